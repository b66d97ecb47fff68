// zinc-rt chat, and zinc-rt run without a prompt: a conversation in the terminal.
#include <editline/readline.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

volatile std::sig_atomic_t interrupted = 0;

struct ChatOptions {
  ModelOptions model;
  Request request;
  std::string system;
};

// A line with editing and history on a terminal, a plain one from a pipe; false at the end.
bool read_line(std::string& line) {
  if (isatty(STDIN_FILENO) == 0) return static_cast<bool>(std::getline(std::cin, line));
  const std::unique_ptr<char, decltype(&std::free)> text(readline("> "), &std::free);
  if (!text) return false;
  line = text.get();
  if (!line.empty()) add_history(line.c_str());
  return true;
}

Result<std::string> answer(const Session& session, Request request, const Json& history) {
  request.messages = history.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto stream = session.stream(request);
  if (!stream) return std::unexpected(stream.error());
  interrupted = 0;
  for (;;) {
    if (interrupted != 0) stream->cancel();
    const auto event = stream->next();
    if (!event) return std::unexpected(event.error());
    if (!*event) break;
    fmt::print("{}", (*event)->text);
    std::fflush(stdout);
  }
  fmt::print("\n");
  return stream->completion().text;
}

}  // namespace

Result<int> converse(ModelOptions& model, const Request& request, const std::string& system) {
  auto engine = open_engine(model);
  if (!engine) return std::unexpected(engine.error());
  auto tenant = engine->tenant("cli");
  if (!tenant) return std::unexpected(tenant.error());
  const auto session = tenant->session(system);
  if (!session) return std::unexpected(session.error());
  fmt::print(stderr, "/reset forgets the conversation, /exit or Ctrl-D leaves, Ctrl-C stops an answer\n");
  std::signal(SIGINT, [](int) { interrupted = 1; });
  Json history = Json::array();
  for (std::string line; read_line(line);) {
    if (line.empty()) continue;
    if (line == "/exit") break;
    if (line == "/reset") {
      history.clear();
      continue;
    }
    history.push_back({{"role", "user"}, {"content", line}});
    const auto text = answer(*session, request, history);
    if (!text) {  // the turn is taken back, so that a shorter one may follow
      report(text.error());
      history.erase(history.size() - 1);
      continue;
    }
    history.push_back({{"role", "assistant"}, {"content", *text}});
  }
  return kDone;
}

void add_chat(CLI::App& app, int& exit) {
  auto o = std::make_shared<ChatOptions>();
  o->request.max_tokens = 512;
  auto& command = *app.add_subcommand("chat", "talk with a model in the terminal");
  command.footer("Example: zinc-rt chat model.gguf --system \"Answer in one sentence.\"");
  add_model_options(command, o->model);
  command.add_option("--system", o->system, "system message");
  command.add_option("-n,--max-tokens", o->request.max_tokens, "most tokens an answer")->capture_default_str();
  command.add_option("--temperature", o->request.temperature, "0: greedy")->capture_default_str();
  command.add_option("--top-p", o->request.top_p, "1: off");
  command.add_option("--repetition-penalty", o->request.repetition_penalty, "1: off");
  command.add_option_function<std::uint64_t>(
      "--seed", [o](const std::uint64_t& seed) { o->request.seed = seed; }, "same seed, same tokens");
  command.callback([o, &exit] {
    const auto done = converse(o->model, o->request, o->system);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
