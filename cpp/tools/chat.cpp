// `zinc-rt chat`: a conversation in the terminal, with a model or with a server.
#include <fmt/format.h>

#include <cstdio>
#include <future>
#include <memory>

#include "base/error.h"
#include "base/options.h"
#include "base/print.h"
#include "client/openai_client.h"
#include "tools/command.h"
#include "tools/line_editor.h"
#include "tools/sampling_options.h"
#include "tools/talk.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLook_ms = 5;  // how often Ctrl-C is checked while no text comes

struct ChatOptions {
  ModelOptions model;
  Request request;
  std::set<std::string> given;  // sampling settings that the user gave
  std::string system, url, api_key, model_name;
};

Result<TurnAnswer> answer(const Session& session, const Talk& talk) {
  Request request = talk.request;
  request.messages = talk.messages().dump(-1, ' ', false, Json::error_handler_t::replace);
  auto stream = session.stream(request);
  if (!stream) return std::unexpected(stream.error());
  for (;;) {
    if (was_interrupted()) stream->cancel();
    bool is_there = true;
    const auto event = stream->next_within(kLook_ms, is_there);
    if (!event) return std::unexpected(event.error());
    if (!is_there) continue;
    if (!*event) break;
    ZRT_CHECK_OK(print_now((*event)->text));
  }
  ZRT_CHECK_OK(print_now("\n"));
  const auto done = stream->completion();
  return TurnAnswer{done.text,
                    done.finish_reason,
                    done.usage.prompt_tokens,
                    done.usage.cached_tokens,
                    done.usage.completion_tokens,
                    done.timings.decode_tokens_per_s};
}

// Returns the body of a request to a server. Fields that some servers do not know are sent only if the user set them.
Json chat_body(const Talk& talk, const std::set<std::string>& given, const std::string& model) {
  const auto& r = talk.request;
  Json body{{"model", model}, {"messages", talk.messages()}, {"max_tokens", r.max_tokens}};
  body["temperature"] = r.temperature;
  if (r.top_p != 1) body["top_p"] = r.top_p;
  const auto add = [&](const char* name, auto value) {
    if (given.contains(name)) body[name] = value;
  };
  add("top_k", r.top_k);
  add("min_p", r.min_p);
  add("typical_p", r.typical_p);
  add("repetition_penalty", r.repetition_penalty);
  add("presence_penalty", r.presence_penalty);
  add("frequency_penalty", r.frequency_penalty);
  if (r.seed) body["seed"] = *r.seed;
  return body;
}

Result<TurnAnswer> answer(client::HttpClient& http, const client::ApiServer& server, Json body) {
  constexpr double kTimeout_s = 3600;
  TurnAnswer out;
  Status shown;
  bool is_thinking = false;
  std::promise<client::ApiEnd> promise;
  client::ApiEvents events;
  events.on_piece = [&](const client::ApiPiece& piece) {
    const auto* gap = is_thinking && !piece.text.empty() ? "\n\n" : "";
    shown = print_now(piece.reasoning + gap + piece.text);
    is_thinking = piece.text.empty() && !piece.reasoning.empty();
    out.text += piece.text;
    return shown && !was_interrupted();
  };
  events.on_end = [&](const client::ApiEnd& end) { promise.set_value(end); };
  const auto handle = client::stream(http, server, std::move(body), kTimeout_s, std::move(events));
  auto over = promise.get_future();
  while (over.wait_for(std::chrono::milliseconds(kLook_ms)) != std::future_status::ready)
    if (was_interrupted()) handle->cancel();
  const auto end = over.get();
  ZRT_CHECK_OK(shown);
  if (!out.text.empty() || end.error.empty()) ZRT_CHECK_OK(print_now("\n"));
  if (!end.error.empty()) return std::unexpected(Error{StatusCode::kUnavailable, end.error, end.retry_after_s});
  return out;
}

Result<int> converse_over_http(const ChatOptions& o) {
  ZRT_TRY(const auto server,
          client::api_server(o.url, o.api_key.empty() ? options::get("ZINC_RT_API_KEY") : o.api_key));
  ZRT_TRY(const auto http, client::HttpClient::open(server.url));
  std::string model = o.model_name;
  if (model.empty()) {
    ZRT_TRY(model, client::first_model(*http, server));
  }
  Talk talk;
  talk.request = o.request;
  talk.system = o.system;
  set_chat_sampling(talk.request, o.given);
  return converse(talk, [&](const Talk& now) { return answer(*http, server, chat_body(now, o.given, model)); });
}

}  // namespace

Result<int> converse(ModelOptions& model, const Request& request, const std::set<std::string>& given,
                     const std::string& system) {
  auto engine = open_engine(model);
  if (!engine) return std::unexpected(engine.error());
  // If the model has no chat template, fail before the user types the first question.
  if (const auto shown = engine->apply_template(R"([{"role":"user","content":"a"}])"); !shown)
    return fail(shown.error().code, "{}; `zinc-rt run {} -p TEXT` goes on with a text", shown.error().message,
                model.model);
  auto tenant = engine->tenant("cli");
  if (!tenant) return std::unexpected(tenant.error());
  const auto session = tenant->session();
  if (!session) return std::unexpected(session.error());
  Talk talk;
  talk.request = request;
  talk.system = system;
  if (const auto memory = engine->memory_plan()) talk.max_context = memory->max_context;
  set_chat_sampling(talk.request, given, model.model);
  return converse(talk, [&](const Talk& now) { return answer(*session, now); });
}

void add_chat(CLI::App& app, int& exit) {
  auto o = std::make_shared<ChatOptions>();
  o->request.max_tokens = 1024;
  auto& command = *app.add_subcommand("chat", "talk with a model in the terminal");
  command.footer(
      "Example: zinc-rt chat model.gguf --system \"Answer in one sentence.\"\n"
      "  zinc-rt chat smollm2                                 a model of the models folder (zinc-rt models)\n"
      "  zinc-rt chat --url http://127.0.0.1:8080 --api-key \"$KEY\"\n"
      "Sampling is as the model's file recommends it, else temperature 0.7, min_p 0.05 and repetition_penalty 1.05;\n"
      "what is given goes before that. /help in the conversation lists its commands. A pipe gives a line a turn.");
  add_model_options(command, o->model, "-m,MODEL");
  auto* file = command.get_option("MODEL")->required(false);
  auto* url = command.add_option("--url", o->url, "a server with OpenAI's API that answers instead")->excludes(file);
  command.add_option("--api-key", o->api_key, "for it (or ZINC_RT_API_KEY)")->needs(url);
  command.add_option("--model", o->model_name, "the name of one of its models; else its first")->needs(url);
  for (const char* name : {"--url", "--api-key", "--model"}) command.get_option(name)->group("A server instead");
  command.add_option("--system", o->system, "system message");
  command.add_option("-n,--max-tokens", o->request.max_tokens, "most tokens an answer")->capture_default_str();
  add_sampling_options(command, o->request, o->given);
  command.callback([o, &exit] {
    if (o->url.empty() && o->model.model.empty()) throw CLI::RequiredError("MODEL");
    const auto done = o->url.empty() ? converse(o->model, o->request, o->given, o->system) : converse_over_http(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
