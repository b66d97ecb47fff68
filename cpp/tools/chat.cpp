// zinc-rt chat, and zinc-rt run without a prompt: a conversation in the terminal.
#include <editline/readline.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/options.h"
#include "client/openai_client.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLook_ms = 50;  // Ctrl-C is looked for this often while no text comes

volatile std::sig_atomic_t interrupted = 0;

struct ChatOptions {
  ModelOptions model;
  Request request;
  std::string system, url, api_key, model_name;
};

// editline reads characters, by the locale; without one of UTF-8 it drops all but ASCII.
void read_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

// flags: SA_RESTART, or 0 where Ctrl-C is to end a wait for input.
void on_interrupt(int flags) {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
}

// A line with editing and history on a terminal, a plain one from a pipe; false at the end.
bool read_line(std::string& line) {
  if (isatty(STDIN_FILENO) == 0) return static_cast<bool>(std::getline(std::cin, line));
  // editline would send the signal to the process once more, and any of its threads might take that, at any time.
  rl_catch_signals = 0;
  std::unique_ptr<char, decltype(&std::free)> text(nullptr, &std::free);
  on_interrupt(0);
  do {
    interrupted = 0;
    text.reset(readline("> "));
    if (interrupted != 0) fmt::print("\n");
  } while (!text && interrupted != 0);  // Ctrl-C: a new line; Ctrl-D gives no text either
  on_interrupt(SA_RESTART);
  if (!text) return false;
  line = text.get();
  if (!line.empty()) add_history(line.c_str());
  return true;
}

// The answer to a conversation, printed as it comes; what there is of it when `interrupted` was set.
using Answerer = std::function<Result<std::string>(const Json& messages)>;

Result<std::string> answer(const Session& session, Request request, const Json& messages) {
  request.messages = messages.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto stream = session.stream(request);
  if (!stream) return std::unexpected(stream.error());
  for (;;) {
    if (interrupted != 0) stream->cancel();
    bool is_there = true;
    const auto event = stream->next_within(kLook_ms, is_there);
    if (!event) return std::unexpected(event.error());
    if (!is_there) continue;
    if (!*event) break;
    ZRT_CHECK_OK(print_now((*event)->text));
  }
  ZRT_CHECK_OK(print_now("\n"));
  return stream->completion().text;
}

Json chat_body(const ChatOptions& o, const std::string& model, const Json& messages) {
  const auto& r = o.request;
  Json body{{"model", model}, {"messages", Json::array()}, {"max_tokens", r.max_tokens}};
  if (!o.system.empty()) body["messages"].push_back({{"role", "system"}, {"content", o.system}});
  for (const auto& message : messages) body["messages"].push_back(message);
  body["temperature"] = r.temperature;
  // Not every server knows the rest.
  if (r.top_p != 1) body["top_p"] = r.top_p;
  if (r.repetition_penalty != 1) body["repetition_penalty"] = r.repetition_penalty;
  if (r.seed) body["seed"] = *r.seed;
  return body;
}

Result<std::string> answer(client::HttpClient& http, const client::ApiServer& server, Json body) {
  constexpr double kTimeout_s = 3600;
  std::string text;
  Status shown;
  bool is_thinking = false;
  std::promise<client::ApiEnd> promise;
  client::ApiEvents events;
  events.on_piece = [&](const client::ApiPiece& piece) {
    const auto* gap = is_thinking && !piece.text.empty() ? "\n\n" : "";
    shown = print_now(piece.reasoning + gap + piece.text);
    is_thinking = piece.text.empty() && !piece.reasoning.empty();
    text += piece.text;
    return shown && interrupted == 0;
  };
  events.on_end = [&](const client::ApiEnd& end) { promise.set_value(end); };
  const auto handle = client::stream(http, server, std::move(body), kTimeout_s, std::move(events));
  auto over = promise.get_future();
  while (over.wait_for(std::chrono::milliseconds(kLook_ms)) != std::future_status::ready)
    if (interrupted != 0) handle->cancel();
  const auto end = over.get();
  ZRT_CHECK_OK(shown);
  if (!text.empty() || end.error.empty()) ZRT_CHECK_OK(print_now("\n"));
  if (!end.error.empty()) return std::unexpected(Error{StatusCode::kUnavailable, end.error, end.retry_after_s});
  return text;
}

// kFailed where nobody sits before it and the last turn had no answer.
int talk(const Answerer& answerer) {
  bool has_failed = false;
  on_interrupt(SA_RESTART);
  fmt::print(stderr,
             "/reset forgets the conversation, /exit or Ctrl-D leaves, Ctrl-C stops an answer or drops a line\n");
  read_utf8();
  Json history = Json::array();
  for (std::string line; read_line(line);) {
    if (line.empty()) continue;
    if (line == "/exit") break;
    if (line == "/reset") {
      history.clear();
      continue;
    }
    history.push_back({{"role", "user"}, {"content", line}});
    interrupted = 0;
    const auto text = answerer(history);
    has_failed = !text;
    if (!text) {  // the turn is taken back, so that a shorter one may follow
      report(text.error());
      history.erase(history.size() - 1);
      continue;
    }
    history.push_back({{"role", "assistant"}, {"content", *text}});
  }
  return has_failed && isatty(STDIN_FILENO) == 0 ? kFailed : kDone;
}

Result<int> converse_over_http(const ChatOptions& o) {
  ZRT_TRY(const auto server,
          client::api_server(o.url, o.api_key.empty() ? options::get("ZINC_RT_API_KEY") : o.api_key));
  ZRT_TRY(const auto http, client::HttpClient::open(server.url));
  std::string model = o.model_name;
  if (model.empty()) {
    ZRT_TRY(model, client::first_model(*http, server));
  }
  return talk([&](const Json& messages) { return answer(*http, server, chat_body(o, model, messages)); });
}

}  // namespace

Result<int> converse(ModelOptions& model, const Request& request, const std::string& system) {
  auto engine = open_engine(model);
  if (!engine) return std::unexpected(engine.error());
  auto tenant = engine->tenant("cli");
  if (!tenant) return std::unexpected(tenant.error());
  const auto session = tenant->session(system);
  if (!session) return std::unexpected(session.error());
  return talk([&](const Json& messages) { return answer(*session, request, messages); });
}

void add_chat(CLI::App& app, int& exit) {
  auto o = std::make_shared<ChatOptions>();
  o->request.max_tokens = 512;
  auto& command = *app.add_subcommand("chat", "talk with a model in the terminal");
  command.footer(
      "Example: zinc-rt chat model.gguf --system \"Answer in one sentence.\"\n"
      "  zinc-rt chat --url http://127.0.0.1:8080 --api-key \"$KEY\"");
  add_model_options(command, o->model);
  auto* file = command.get_option("model")->required(false);
  auto* url = command.add_option("--url", o->url, "a server with OpenAI's API that answers instead")->excludes(file);
  command.add_option("--api-key", o->api_key, "for it (or ZINC_RT_API_KEY)")->needs(url);
  command.add_option("--model", o->model_name, "the name of one of its models; else its first")->needs(url);
  command.add_option("--system", o->system, "system message");
  command.add_option("-n,--max-tokens", o->request.max_tokens, "most tokens an answer")->capture_default_str();
  command.add_option("--temperature", o->request.temperature, "0: greedy")->capture_default_str();
  command.add_option("--top-p", o->request.top_p, "1: off");
  command.add_option("--repetition-penalty", o->request.repetition_penalty, "1: off");
  command
      .add_option_function<std::uint64_t>(
          "--seed", [o](const std::uint64_t& seed) { o->request.seed = seed; }, "same seed, same tokens")
      ->check(whole_number());
  command.callback([o, &exit] {
    if (o->url.empty() && o->model.model.empty()) throw CLI::RequiredError("model");
    const auto done = o->url.empty() ? converse(o->model, o->request, o->system) : converse_over_http(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
