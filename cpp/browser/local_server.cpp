#include "browser/local_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>
#include <vector>

#include "base/conversation.h"
#include "base/error.h"
#include "base/json_text.h"
#include "server/answers/answer_body.h"
#include "server/answers/generation_apis.h"
#include "server/answers/model_answers.h"
#include "server/answers/model_options.h"
#include "server/api/error_forms.h"
#include "server/api/request_checks.h"
#include "server/http/http_head.h"
#include "zinc_rt/version.h"

namespace zinc_rt::browser {

using namespace server;

namespace {

constexpr std::uint64_t kMostAnswerBytes = 64 << 20;  // an answer that may be longer is refused

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

// Returns the name of the file without its folder and ending.
std::string default_id(std::string_view path) {
  path.remove_prefix(path.find_last_of('/') + 1);  // npos + 1 is 0
  return std::string(path.ends_with(".gguf") ? path.substr(0, path.size() - 5) : path);
}

HttpResponse json_answer(std::string body) {
  HttpResponse response;
  response.content_type = kJson;
  response.body = std::move(body);
  return response;
}

ApiError not_served(const std::string& method, const std::string& path) {
  return make_error(404,
                    fmt::format("[browser] there is no {} {}: an engine in a page has the paths that generate text, "
                                "GET /v1/models and GET /health",
                                method.substr(0, 20), path.substr(0, 100)));
}

}  // namespace

// A request and its answer.
class LocalServer::Call {
 public:
  explicit Call(HttpResponse whole) : n_open_(0) { put(std::move(whole)); }
  Call(const Engine& engine, const std::string& engine_model, AnswerHead head, GenerationCall call,
       const GenerationApi& api, std::uint32_t max_context)
      : body_(std::make_unique<AnswerBody>(engine, engine_model, std::move(head), std::move(call), api.make_writer)),
        make_error_(error_form_of(api.path)),
        max_context_(max_context),
        n_open_(body_->n_choices()) {}

  ApiResult<void> start(const std::shared_ptr<Call>& self, const Session& session);
  void cancel() {
    is_gone_ = true;
    for (auto& handle : handles_) handle.cancel();
    handles_.clear();  // they own the sinks, which own this call
  }
  AnswerPiece next();

  // The sink's functions.
  SinkResult push(std::uint32_t prompt, const StreamEvent& event);
  void end(std::uint32_t prompt, std::uint32_t index) { ended_.emplace_back(prompt, index); }
  // Handles the ends of choices. pump() calls it after the step, because a sink must not wait for its own request.
  // Returns false if there were none.
  bool settle();

 private:
  using Kind = AnswerPiece::Kind;
  void put_head(int status, const std::string& content_type) {
    head_ = fmt::format(R"({{"status":{},"content_type":{}}})", status, json_string(content_type));
  }
  void put(HttpResponse whole) {
    put_head(whole.status, whole.content_type);
    text_ = std::move(whole.body);
    is_over_ = true;
  }
  void begin();
  void conclude();

  const std::unique_ptr<AnswerBody> body_;  // null for an answer that was complete at once
  const MakeErrorResponse make_error_ = nullptr;
  const std::uint32_t max_context_ = 0;
  std::vector<RequestHandle> handles_;                          // index: prompt
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ended_;  // choices that ended and are not handled: prompt, index
  std::uint32_t n_open_;
  std::string head_, text_;  // what next() has not returned
  std::string last_event_;   // the end of the last choice of a stream
  bool has_begun_ = false, is_over_ = false, is_gone_ = false;
};

class LocalServer::CallSink final : public Sink {
 public:
  CallSink(std::shared_ptr<Call> call, std::uint32_t prompt) : call_(std::move(call)), prompt_(prompt) {}
  SinkResult push(const StreamEvent& event) override { return call_->push(prompt_, event); }
  void end(std::uint32_t index) override { call_->end(prompt_, index); }

 private:
  const std::shared_ptr<Call> call_;
  const std::uint32_t prompt_;
};

ApiResult<void> LocalServer::Call::start(const std::shared_ptr<Call>& self, const Session& session) {
  for (std::uint32_t i = 0; i < body_->n_prompts(); ++i) {
    auto handle = session.submit(body_->take_request(i), std::make_shared<CallSink>(self, i));
    if (!handle) {
      cancel();
      return std::unexpected(submit_error(handle.error(), body_->call(), i, max_context_));
    }
    handles_.push_back(std::move(*handle));
  }
  if (!body_->call().stream) return {};
  put_head(200, body_->stream_type());
  return {};
}

// Writes the events before the first choice. Called with the first event of the engine, because the request's cached
// tokens are known then.
void LocalServer::Call::begin() {
  if (std::exchange(has_begun_, true)) return;
  Usage usage = handles_.front().completion().usage;
  usage.completion_tokens = 0;  // none was sent
  text_ += body_->begin(usage);
}

SinkResult LocalServer::Call::push(std::uint32_t prompt, const StreamEvent& event) {
  if (is_gone_) return SinkResult::kFailed;
  if (!body_->call().stream) return SinkResult::kTaken;
  begin();
  text_ += body_->part(prompt, event);
  return SinkResult::kTaken;
}

bool LocalServer::Call::settle() {
  const auto ended = std::exchange(ended_, {});
  for (const auto& [prompt, index] : ended) {
    if (is_gone_) continue;
    if (body_->call().stream) {
      begin();
      auto event = body_->end_choice(prompt, index, handles_[prompt]);
      (n_open_ == 1 ? last_event_ : text_) += event;  // the last one is not sent before an error
    }
    if (--n_open_ == 0) conclude();
  }
  return !ended.empty();
}

void LocalServer::Call::conclude() {
  const auto sum = sum_up(handles_);
  const bool is_stream = body_->call().stream;
  if (sum.error) {
    const auto error = request_error(*sum.error, body_->call(), max_context_);
    if (is_stream)
      text_ += body_->failed(error);
    else
      put(make_error_(error));
  } else if (is_stream) {
    text_ += last_event_ + body_->end(sum.totals);
  } else {
    put(json_answer(body_->whole(handles_, sum.totals)));
  }
  is_over_ = true;
  handles_.clear();
}

AnswerPiece LocalServer::Call::next() {
  if (!head_.empty()) return {Kind::kHead, std::exchange(head_, {})};
  if (!text_.empty()) return {Kind::kBody, std::exchange(text_, {})};
  return {is_over_ ? Kind::kEnd : Kind::kNone, {}};
}

LocalServer::LocalServer(Engine engine, std::string id)
    : engine_(std::move(engine)),
      id_(std::move(id)),
      engine_model_(engine_.models().front()),
      created_s_(static_cast<std::int64_t>(std::time(nullptr))) {}

LocalServer::~LocalServer() {
  for (auto& [_, call] : calls_) call->cancel();
  engine_.close();
}

ApiResult<std::unique_ptr<LocalServer>> LocalServer::open(std::string_view body) {
  ZRT_TRY(const auto json, parse_object(body));
  Fields fields(json);
  ZRT_TRY(const auto path, fields.get_string("path", 4096));
  if (!path) return fields.wrong("path", "it is missing");
  ZRT_TRY(auto id, fields.get_string("id", 256));
  EngineOptions options;
  options.max_slots = 1;  // a page has one reader, and each slot has KV pages
  ZRT_CHECK_OK(read_model_options(fields, options));
  ZRT_CHECK_OK(fields.expect_no_others());
  auto engine = Engine::open_without_threads(*path, options);
  if (!engine) return std::unexpected(to_api_error(engine.error(), ErrorSource::kModelFile));
  if (!id || id->empty()) id = default_id(*path);
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(*engine), std::move(*id)));
}

std::uint32_t LocalServer::submit(const std::string& method, const std::string& target, std::string_view body) {
  std::shared_ptr<Call> call;
  // As over HTTP, a query changes nothing.
  std::string path;
  auto whole = percent_decode(std::string_view(target).substr(0, target.find('?')), path)
                   ? answer_to(method, path, body, call)
                   : error_response(make_error(400, "[browser] the path has a broken escape or is not UTF-8"));
  if (call == nullptr) call = std::make_shared<Call>(std::move(whole));
  do ++last_number_;
  while (last_number_ == 0 || calls_.contains(last_number_));
  calls_.emplace(last_number_, std::move(call));
  return last_number_;
}

// Returns the answer if it is complete at once; else sets `call`.
HttpResponse LocalServer::answer_to(const std::string& method, const std::string& path, std::string_view body,
                                    std::shared_ptr<Call>& call) {
  if (method == "GET" && path == "/health") return json_answer(R"({"status":"ok"})");
  if (method == "GET" && path == "/v1/models") return json_answer(R"({"object":"list","data":[)" + describe() + "]}");
  if (method == "GET" && path == "/v1/models/" + id_) return json_answer(describe());
  HttpResponse loaded;
  auto started = method == "POST" ? start(path, body, loaded) : std::unexpected(not_served(method, path));
  if (!started) return error_form_of(path)(started.error());
  call = std::move(*started);
  return loaded;
}

// Submits the prompts of a request for text. If the request only asks whether the model is loaded, sets `loaded` to
// the answer and returns null.
ApiResult<std::shared_ptr<LocalServer::Call>> LocalServer::start(const std::string& path, std::string_view body,
                                                                 HttpResponse& loaded) {
  const auto apis = generation_apis();
  const auto api =
      std::ranges::find_if(apis, [&](const GenerationApi& one) { return one.path == path && !path.contains('{'); });
  if (api == apis.end()) return std::unexpected(not_served("POST", path));
  ZRT_TRY(auto json, parse_object(body));
  if (api->has_conversations) {
    Fields fields(json);
    ZRT_TRY(const auto earlier, fields.get_string("previous_response_id"));
    ZRT_TRY(const auto stores, fields.get_bool("store"));
    const char* kept = "no answers are kept in a page: send the whole conversation";
    if (earlier) return fields.wrong("previous_response_id", kept);
    if (stores.value_or(false)) return fields.wrong("store", kept);
  }
  Request defaults;
  defaults.temperature = 1;
  ZRT_TRY(auto call, api->parse(json, defaults, nullptr));
  json = nullptr;
  const auto& first = call.requests.front();
  if (!first.model.empty() && first.model != id_) {
    auto error = make_error(
        404, fmt::format("[models] there is no model \"{}\"; this page has {}", first.model.substr(0, 200), id_),
        "model");
    error.code = "model_not_found";
    return std::unexpected(std::move(error));
  }
  if (call.gives_model_back) return wrong_field("keep_alive", "0 is given, and a page keeps its model");
  if (call.only_loads) {
    loaded = json_answer(api->loaded(call.api, id_, false));
    return nullptr;
  }
  const auto card = engine_.model_card();
  const auto memory = engine_.memory_plan();
  if (!card) return std::unexpected(to_api_error(card.error()));
  if (!memory) return std::unexpected(to_api_error(memory.error()));
  ZRT_CHECK_OK(check_generates(*card, id_));
  if (const auto& chat = first.conversation; chat != nullptr && !chat->tools.is_null())
    if (!reads_tools(engine_, engine_model_, chat->variables.empty() ? std::string() : as_text(chat->variables)))
      return std::unexpected(tools_unread(id_));
  ZRT_CHECK_OK(check_answer_size(call, memory->max_context, kMostAnswerBytes));
  ZRT_CHECK_OK(check_context(call.wanted_context, memory->max_context));
  const auto tenant = engine_.tenant("page");
  if (!tenant) return std::unexpected(to_api_error(tenant.error()));
  const auto session = tenant->session();
  if (!session) return std::unexpected(to_api_error(session.error()));
  auto head = make_head(*api, call, random_id(), id_, *card);
  auto made =
      std::make_shared<Call>(engine_, engine_model_, std::move(head), std::move(call), *api, memory->max_context);
  ZRT_CHECK_OK(made->start(made, *session));
  return made;
}

Pumped LocalServer::pump() {
  auto pumped = engine_.pump().value_or(Pumped{});
  for (const auto& [_, call] : calls_) pumped.ran |= call->settle();
  return pumped;
}

AnswerPiece LocalServer::next(std::uint32_t number) {
  const auto it = calls_.find(number);
  if (it == calls_.end()) return {AnswerPiece::Kind::kEnd, {}};
  auto piece = it->second->next();
  if (piece.kind == AnswerPiece::Kind::kEnd) calls_.erase(it);
  return piece;
}

void LocalServer::cancel(std::uint32_t number) {
  const auto it = calls_.find(number);
  if (it == calls_.end()) return;
  it->second->cancel();
  calls_.erase(it);
}

std::string LocalServer::describe() const {
  const auto card = engine_.model_card();
  const auto memory = engine_.memory_plan();
  if (!card || !memory) return {};
  const auto stats = engine_.stats();
  const std::uint64_t n_bad_logits = stats.models.empty() ? 0 : stats.models.front().bad_logits;
  return as_text(describe_model({id_, created_s_, memory->max_context, n_bad_logits}, *card, *memory));
}

std::string LocalServer::info() const {
  return fmt::format(R"({{"version":{},"arithmetic_version":{},"model":{},"stats":{}}})", json_string(kVersion),
                     kArithmeticVersion, describe(), to_json(engine_.stats()));
}

}  // namespace zinc_rt::browser
