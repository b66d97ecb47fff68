// `zinc-rt run`: streams one completion. Without a prompt it begins a conversation.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "base/print.h"
#include "tools/command.h"
#include "tools/sampling_options.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  ModelOptions model;
  Request request;
  std::set<std::string> given;  // sampling settings that the user gave
  std::string prompt, chat, system, file;
  bool is_chat = false, json = false;
  std::string json_schema, grammar, regex;  // json_schema and grammar are paths of files
};

void print_json(const Completion& c) {
  const Json json{{"text", c.text},
                  {"token_ids", c.token_ids},
                  {"finish_reason", c.finish_reason},
                  {"seed", c.seed},
                  {"usage",
                   {{"prompt_tokens", c.usage.prompt_tokens},
                    {"completion_tokens", c.usage.completion_tokens},
                    {"total_tokens", c.usage.total_tokens}}},
                  {"timings",
                   {{"prefill_ms", c.timings.prefill_ms},
                    {"decode_ms", c.timings.decode_ms},
                    {"prefill_tokens_per_s", c.timings.prefill_tokens_per_s},
                    {"decode_tokens_per_s", c.timings.decode_tokens_per_s},
                    {"clamps", c.timings.clamps}}}};
  print_out("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Reads a whole file, or standard input if the path is "-".
Result<std::string> read_text(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return std::move(text).str();
  }
  std::ifstream in(path, std::ios::binary);
  if (in) text << in.rdbuf();
  if (!in || std::filesystem::is_directory(path))
    return fail(StatusCode::kNotFound, "{}: {}", path, std::generic_category().message(errno != 0 ? errno : EISDIR));
  return std::move(text).str();
}

// Makes the prompt from -p, --chat, -f and standard input. Returns false if none of them has a text; the caller then
// begins a conversation.
Result<bool> read_prompt(RunOptions& o, bool has_prompt) {
  if (o.file.empty() && !has_prompt && !o.is_chat) {
    if (isatty(STDIN_FILENO) != 0) return false;
    o.is_chat = true;  // all text from a pipe is one message
    ZRT_TRY(o.chat, read_text("-"));
    return true;
  }
  if (o.file.empty()) return true;
  ZRT_TRY(const auto text, read_text(o.file));
  if (o.is_chat)
    o.chat += (o.chat.empty() ? "" : "\n\n") + text;
  else
    o.prompt = text;
  return true;
}

// Reads the answer's format from the file that an option gives.
Status read_format(RunOptions& o) {
  using Kind = OutputFormat::Kind;
  for (const auto& [path, kind] : {std::pair(&o.json_schema, Kind::kJsonSchema), std::pair(&o.grammar, Kind::kGbnf)})
    if (!path->empty()) {
      ZRT_TRY(o.request.output_format.text, read_text(*path));
      o.request.output_format.kind = kind;
    }
  if (!o.regex.empty()) o.request.output_format = {Kind::kRegex, o.regex, {}};
  return {};
}

Result<int> run(RunOptions& o) {
  ZRT_CHECK_OK(read_format(o));
  auto engine = open_engine(o.model);
  if (!engine) return std::unexpected(engine.error());
  auto tenant = engine->tenant("cli");
  if (!tenant) return std::unexpected(tenant.error());
  auto session = tenant->session(o.system);
  if (!session) return std::unexpected(session.error());
  if (o.is_chat)
    o.request.messages =
        Json::array({{{"role", "user"}, {"content", o.chat}}}).dump(-1, ' ', false, Json::error_handler_t::replace);
  else
    o.request.prompt = o.prompt;
  auto stream = session->stream(o.request);
  if (!stream) return std::unexpected(stream.error());
  for (;;) {
    const auto event = stream->next();
    if (!event) return std::unexpected(event.error());
    if (!*event) break;
    if (!o.json) ZRT_CHECK_OK(print_now((*event)->text));
  }
  const auto completion = stream->completion();
  if (o.json) {
    print_json(completion);
    return kDone;
  }
  ZRT_CHECK_OK(print_now("\n"));  // comes before the line on stderr, in case both go to the same pipe
  const auto& t = completion.timings;
  print_err("[{} prompt tokens, {:.1f} tokens/s; {} generated, {:.1f} tokens/s; {}; tier {}, arithmetic {}]\n",
            completion.usage.prompt_tokens, t.prefill_tokens_per_s, completion.usage.completion_tokens,
            t.decode_tokens_per_s, completion.finish_reason, engine->tier(), engine->arithmetic());
  return kDone;
}

}  // namespace

void add_run(CLI::App& app, int& exit) {
  auto o = std::make_shared<RunOptions>();
  auto& command =
      *app.add_subcommand("run", "complete a prompt, answer one chat message, or (with neither) talk back and forth");
  command.footer(
      "Example: zinc-rt run model.gguf --chat \"What is a GGUF file?\" -n 200 --temperature 0.7 --seed 1\n"
      "  zinc-rt run model.gguf -f story.txt                  go on with the text of a file\n"
      "  zinc-rt run model.gguf --chat \"In one sentence:\" -f story.txt\n"
      "  git diff | zinc-rt run model.gguf                    a pipe is one message\n"
      "Greedy (temperature 0) unless told otherwise; statistics go to stderr.");
  add_model_options(command, o->model);
  auto* prompt = command.add_option("-p,--prompt", o->prompt, "text to go on with, as it is");
  command.add_option("--chat", o->chat, "a user message, put through the model's chat template")->excludes(prompt);
  command
      .add_option("-f,--file", o->file, "the prompt from a file (-: standard input); with --chat, behind the message")
      ->excludes(prompt);
  command.add_option("--system", o->system, "system message for --chat, or for talking")->excludes(prompt);
  auto& r = o->request;
  command.add_option("-n,--max-tokens", r.max_tokens, "most tokens to generate")->capture_default_str();
  add_sampling_options(command, r, o->given);
  command.add_option("--stop", r.stop, "end before this text; may be given several times")->allow_extra_args(false);
  command.add_flag("--ignore-eos", r.ignore_eos, "go on past the model's end tokens");
  auto* schema = command.add_option("--json-schema", o->json_schema, "bind the answer to the JSON schema in a file");
  auto* grammar = command.add_option("--grammar", o->grammar, "bind the answer to the grammar (GBNF) in a file");
  command.add_option("--regex", o->regex, "bind the answer to a regular expression")
      ->excludes(schema)
      ->excludes(grammar);
  grammar->excludes(schema);
  command.add_flag("--json", o->json, "print one JSON object at the end");
  command.callback([o, &exit, &command] {
    o->is_chat = command.count("--chat") > 0;
    const auto has_prompt = read_prompt(*o, command.count("--prompt") > 0);
    const auto done = !has_prompt   ? Result<int>(std::unexpected(has_prompt.error()))
                      : *has_prompt ? run(*o)
                                    : converse(o->model, o->request, o->given, o->system);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
