// Handles the generating endpoints: /v1/chat/completions, /v1/completions, /generate, and those of the other APIs.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/conversation.h"
#include "base/error.h"
#include "server/api/error_forms.h"
#include "server/core.h"
#include "server/generation_job.h"
#include "server/incoming.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

using Parse = ApiResult<GenerationCall> (*)(const Json&, const Request&, Ignored);

// Returns the number of prompts times n, which is what the engine's queue counts. Errors: 400 if the queue can never
// hold as many.
ApiResult<std::uint64_t> count_choices(const TenantEntry& tenant, const ServedModel& model,
                                       const GenerationCall& call) {
  const std::uint64_t n_prompts = call.requests.size(), n = call.requests.front().n, n_choices = n_prompts * n;
  const std::uint64_t most = tenant.settings().max_open_requests;
  const auto limit = std::min<std::uint64_t>(most, model.queue_cap);
  if (n_choices <= limit) return n_choices;
  return std::unexpected(
      make_error(400,
                 fmt::format("[quota] {} prompts with n {} are {} choices, {} allowed ({})", n_prompts, n, n_choices,
                             limit, limit == most ? "max_open_requests" : "queue_cap"),
                 n > 1 ? "n" : "prompt"));
}

// Returns an estimate of the bytes per likely token in an answer, not counting the bytes per choice.
std::uint64_t bytes_of_logprob(Api api) {
  return api == Api::kChat ? 80 : 40;
}

// A hash in an answer, such as `"0123456789abcdef",`, takes this many bytes.
constexpr std::uint64_t kBytesOfHash = 19;

// Checks an estimate of the answer's size, because the server holds the answer in memory until the client has read it.
// Errors: 400 if the answer would be too large.
ApiResult<void> check_answer_size(const GenerationCall& call, const ServedModel& model, std::uint64_t most) {
  const char* logprobs = call.api == Api::kChat ? "top_logprobs" : "logprobs";
  // Bytes that each field adds to the answer, in the order in which an error names the fields.
  std::pair<const char*, std::uint64_t> parts[] = {
      {"prompt_logprobs", 0}, {logprobs, 0}, {"return_logits_hash", 0}, {"echo", 0}};
  for (const Request& request : call.requests) {
    // A text has at most as many tokens as bytes. A text longer than the context is refused elsewhere.
    const std::uint64_t n_bytes = request.prompt ? request.prompt->size() : 0;
    const std::uint64_t n_prompt =
        std::min<std::uint64_t>(model.max_context, request.token_ids ? request.token_ids->size() : n_bytes);
    const std::uint64_t n_generated = std::min(request.max_tokens, model.max_context);
    const auto of_rows = [&](std::uint64_t rows, std::uint64_t n_top) {
      return rows * (1 + n_top) * bytes_of_logprob(call.api);
    };
    const std::uint64_t of_choice[] = {
        call.prompt_logprobs ? of_rows(n_prompt, *call.prompt_logprobs) : 0,
        call.wants_logprobs ? of_rows(n_generated + (call.echo ? n_prompt : 0), request.logprobs) : 0,
        request.return_logits_hash ? kBytesOfHash * n_generated : 0, call.echo ? std::max(n_bytes, 4 * n_prompt) : 0};
    for (std::size_t i = 0; i < std::size(parts); ++i) parts[i].second += request.n * of_choice[i];
  }
  std::uint64_t bytes = 0;
  for (const auto& [_, of_field] : parts) bytes += of_field;
  if (bytes <= most) return {};
  const Request& first = call.requests.front();
  const char* param =
      first.n > 1 ? "n" : std::ranges::find_if(parts, [](const auto& p) { return p.second > 0; })->first;
  return std::unexpected(make_error(
      400,
      fmt::format("[request] {} prompts, n {}, {}{}{} {}, prompt_logprobs {}: the answer may take {} bytes, {} allowed "
                  "(max_answer_bytes); lower one of these, or max_tokens",
                  call.requests.size(), first.n, call.echo ? "echo, " : "",
                  first.return_logits_hash ? "return_logits_hash, " : "", logprobs, first.logprobs,
                  call.prompt_logprobs.value_or(0), bytes, most),
      param));
}

ApiResult<void> check_generates(const ServedModel& model) {
  if (model.card.pooling.empty()) return {};
  const bool scores = model.card.pooling == "rank";
  return std::unexpected(make_error(
      400,
      fmt::format("[request] model \"{}\" gives {} (pooling {}) and generates nothing; POST {} asks for them", model.id,
                  scores ? "scores of pairs of texts" : "embeddings", model.card.pooling,
                  scores ? "/v1/rerank" : "/v1/embeddings"),
      "model"));
}

// Endpoint describes a path that generates text: how its body is read, how its answer is written, and how the answers'
// ids begin.
struct Endpoint {
  const char* path;
  Parse parse;
  const char* prefix;
  MakeWriter make_writer = write_openai;
  // Called before the body is read. `held` counts the bytes that the call adds to the conversation.
  ApiResult<void> (*prepare)(ServerCore& core, const Exchange& exchange, Json& body, ByteBudget::Hold& held) = nullptr;
  // Writes the answer to a request that only loads or unloads a model.
  std::string (*loaded)(Api api, const std::string& model, bool is_unloaded) = nullptr;
};

// ParsedCall is what was read from a body whose model has not been found yet.
struct ParsedCall {
  GenerationCall call;
  std::vector<std::string> ignored;
  ByteBudget::Hold held;  // counts a conversation that was loaded or will be stored
};

ApiResult<std::shared_ptr<ParsedCall>> read_call(ServerCore& core, Exchange& exchange, const Endpoint& endpoint) {
  ZRT_TRY(auto body, take_body(core, exchange));
  auto parsed = std::make_shared<ParsedCall>();
  if (endpoint.prepare != nullptr) ZRT_CHECK_OK(endpoint.prepare(core, exchange, body, parsed->held));
  ZRT_TRY(parsed->call, endpoint.parse(body, default_request(exchange), core.is_tolerant ? &parsed->ignored : nullptr));
  set_class(exchange, parsed->call.requests);
  // From here on the parsed messages exist. The input, and the copy of both that will be stored, also exist until the
  // answer has ended.
  std::uint64_t n_bytes = 2 * parsed->call.stored_input.size();
  if (n_bytes > 0 || parsed->held.size() > 0)
    for (const Request& request : parsed->call.requests)
      n_bytes += request.conversation ? text_bytes(request.conversation->messages) : 0;
  if (n_bytes > 0) ZRT_CHECK_OK(hold_parsed(core, exchange, parsed->held, n_bytes));
  return parsed;
}

ApiResult<std::shared_ptr<GenerationJob>> make_job(ServerCore& core, Exchange& exchange, const Endpoint& endpoint,
                                                   ParsedCall& parsed, const ServedModel& model) {
  ZRT_CHECK_OK(check_generates(model));
  GenerationCall& call = parsed.call;
  if (const Request& first = call.requests.front(); first.conversation)
    ZRT_CHECK_OK(check_tools_are_read(core, model, *first.conversation));
  ZRT_CHECK_OK(check_answer_size(call, model, core.max_answer_bytes));
  ZRT_CHECK_OK(check_context(call.wanted_context, model));
  JobContext job;
  job.engine_model = model.engine_name;
  job.model_hold = model.hold;
  job.max_context = model.max_context;
  job.make_writer = endpoint.make_writer;
  job.make_error = error_form_of(exchange.request.path);
  job.endpoint = endpoint.path;              // not the path in the request, because that may contain a model's name
  job.head.id = endpoint.prefix + new_id();  // the key in the ledger, so clients must not choose it
  job.head.model = model.id;
  job.head.created_s = static_cast<std::int64_t>(std::time(nullptr));
  job.head.fingerprint = fmt::format("zrt-{}-{}-{}", kVersion, model.card.arithmetic, kArithmeticVersion);
  const auto& tier = call.service_tier;
  if (!tier.empty()) job.head.service_tier = tier == "auto" ? "default" : tier;
  job.headers.emplace_back("x-request-id", exchange.id);
  note_ignored(parsed.ignored, exchange, job.headers);
  exchange.connection->note("id", job.head.id);
  exchange.connection->note("model", job.head.model);
  job.tenant = exchange.caller.tenant;
  ZRT_TRY(const auto n_choices, count_choices(*job.tenant, model, call));
  if (const auto open = job.tenant->open_request(n_choices, job.headers); !open) {
    core.metrics.refused("rate");
    return std::unexpected(open.error());
  }
  job.traceparent = traceparent_of(exchange.request);
  job.wanted_latency = wanted_latency_of(exchange);
  job.connection = exchange.connection;
  job.gone = exchange.gone.get_token();
  job.held = std::move(parsed.held);
  if (call.resumable)
    job.connection =
        std::make_shared<ResumableStream>(core.streams, job.head.id, job.tenant->name, exchange.connection);
  return std::make_shared<GenerationJob>(JobServices{core.engine, *core.store, core.metrics, core.ends},
                                         std::move(call), std::move(job));
}

void start_job(ServerCore& core, Exchange& exchange, const Endpoint& endpoint, ParsedCall& parsed,
               const ApiResult<ServedModel>& model) {
  if (model && parsed.call.only_loads)
    return answer(core, exchange, endpoint.loaded(parsed.call.api, model->id, false));
  const auto job = model ? make_job(core, exchange, endpoint, parsed, *model) : std::unexpected(model.error());
  if (!job) {
    if (job.error().status == 400) core.metrics.refused("invalid");
    return refuse(core, exchange, job.error());
  }
  if (const auto started = (*job)->start(); !started) {
    core.metrics.refused(started.error().status == 503 ? "queue" : "invalid");
    refuse(core, exchange, started.error());
  }
}

// Answers a request that only unloads a model. No model is loaded, and requests of other tenants are not affected. A
// model that a request had loaded is unloaded if the caller may unload models.
void give_back(ServerCore& core, Exchange& exchange, const Endpoint& endpoint, const GenerationCall& call) {
  const auto& name = call.requests.front().model;
  const auto id = [&]() -> ApiResult<std::string> {
    if (const auto loaded = core.models.find(name)) return loaded->id;
    ZRT_TRY(const auto offered, core.on_demand.find_offered(name));
    return offered.id;
  }();
  if (!id) return refuse(core, exchange, id.error());
  if (exchange.caller.is_admin) core.on_demand.release(*id);
  answer(core, exchange, endpoint.loaded(call.api, *id, true));
}

void add_generation_route(Router& router, ServerCore& core, const Endpoint& endpoint) {
  router.add({"POST", endpoint.path, Access::kKey, false, [&core, endpoint](Exchange& exchange) {
                auto parsed = read_call(core, exchange, endpoint);
                if (!parsed) {
                  if (parsed.error().status == 400) core.metrics.refused("invalid");
                  return refuse(core, exchange, parsed.error());
                }
                if (const auto& call = (*parsed)->call; call.only_loads && call.gives_model_back)
                  return give_back(core, exchange, endpoint, call);
                find_model(core, exchange, (*parsed)->call.requests.front().model,
                           [&core, endpoint, parsed = *parsed](Exchange& held, const ApiResult<ServedModel>& model) {
                             start_job(core, held, endpoint, *parsed, model);
                           });
              }});
}

}  // namespace

void add_generation_routes(Router& router, ServerCore& core) {
  for (const Endpoint& endpoint :
       {Endpoint{"/v1/chat/completions", parse_chat, "chatcmpl-"},
        {"/chat/completions", parse_chat, "chatcmpl-"},
        {"/openai/deployments/{model}/chat/completions", parse_chat, "chatcmpl-"},
        {"/openai/deployments/{model}/completions", parse_completion, "cmpl-"},
        {"/v1/completions", parse_completion, "cmpl-"},
        {"/completions", parse_completion, "cmpl-"},
        {"/generate", parse_generate, "gen-"},
        {"/v1/messages", parse_messages, "msg_", write_messages},
        {"/v1/responses", parse_responses, "resp_", write_responses, find_earlier_response},
        {"/responses", parse_responses, "resp_", write_responses, find_earlier_response},
        {"/api/chat", parse_ollama_chat, "ollama-", write_ollama, nullptr, ollama_loaded},
        {"/api/generate", parse_ollama_generate, "ollama-", write_ollama, nullptr, ollama_loaded}})
    add_generation_route(router, core, endpoint);
}

}  // namespace zinc_rt::server
