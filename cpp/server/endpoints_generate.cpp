// /v1/chat/completions, /v1/completions, /generate.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "server/access_log.h"
#include "server/core.h"
#include "server/generation_job.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

// W3C Trace Context: version, 32 hex digits of the trace, 16 of the caller's span, flags. A malformed value is ignored,
// as the standard demands.
std::string traceparent_of(const HttpRequest& request) {
  const auto text = request.header("traceparent");
  const auto is_hex = [&](std::size_t at, std::size_t n) {
    return text.substr(at, n).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  const auto is_zero = [&](std::size_t at, std::size_t n) {
    return text.substr(at, n).find_first_not_of('0') == std::string_view::npos;
  };
  const bool has_form = text.size() >= 55 && text.size() <= 256 && text[2] == '-' && text[35] == '-' && text[52] == '-';
  if (!has_form || (text.size() > 55 && (text.starts_with("00") || text[55] != '-'))) return {};
  if (!is_hex(0, 2) || !is_hex(3, 32) || !is_hex(36, 16) || !is_hex(53, 2)) return {};
  if (text.starts_with("ff") || is_zero(3, 32) || is_zero(36, 16)) return {};
  return std::string(text.substr(0, 55));
}

using Parse = ApiResult<GenerationCall> (*)(const Json&, const Request&, Ignored);

// Prompts times n, as the engine's queue counts them. Errors: 400 for more than the queue can ever hold.
ApiResult<std::uint64_t> count_choices(const TenantEntry& tenant, const ServedModel& model,
                                       const GenerationCall& call) {
  const std::uint64_t n_prompts = call.requests.size(), n = call.requests.front().n, n_choices = n_prompts * n;
  const std::uint64_t most = tenant.settings().max_open_requests;
  const auto limit = std::min<std::uint64_t>(most, model.queue_cap);
  if (n_choices <= limit) return n_choices;
  ApiError error;
  error.param = n > 1 ? "n" : "prompt";
  error.message = fmt::format("[quota] {} prompts with n {} are {} choices, {} allowed ({})", n_prompts, n, n_choices,
                              limit, limit == most ? "max_open_requests" : "queue_cap");
  return std::unexpected(std::move(error));
}

// About how many bytes one likely token takes in an answer, and how many a choice takes besides its text.
std::uint64_t bytes_of_logprob(Api api) {
  return api == Api::kChat ? 80 : 40;
}

// Checks about how many bytes the answer may have, since it is kept until the client has read it. Errors: 400 for more
// than is allowed.
ApiResult<void> check_answer_size(const GenerationCall& call, const ServedModel& model, std::uint64_t most) {
  std::uint64_t bytes = 0;
  for (const Request& request : call.requests) {
    // A text has at most as many tokens as bytes, and a text longer than the context is refused elsewhere.
    const std::uint64_t n_bytes = request.prompt ? request.prompt->size() : 0;
    const std::uint64_t n_prompt =
        std::min<std::uint64_t>(model.max_context, request.token_ids ? request.token_ids->size() : n_bytes);
    const std::uint64_t n_generated = std::min(request.max_tokens, model.max_context);
    const auto of_rows = [&](std::uint64_t rows, std::uint64_t n_top) {
      return rows * (1 + n_top) * bytes_of_logprob(call.api);
    };
    std::uint64_t one = 0;
    if (call.echo) one += std::max(n_bytes, 4 * n_prompt);
    if (call.wants_logprobs) one += of_rows(n_generated + (call.echo ? n_prompt : 0), request.logprobs);
    if (call.prompt_logprobs) one += of_rows(n_prompt, *call.prompt_logprobs);
    bytes += request.n * one;
  }
  if (bytes <= most) return {};
  const Request& first = call.requests.front();
  const char* logprobs = call.api == Api::kChat ? "top_logprobs" : "logprobs";
  ApiError error;
  error.param = first.n > 1 ? "n" : call.prompt_logprobs ? "prompt_logprobs" : call.wants_logprobs ? logprobs : "echo";
  error.message = fmt::format(
      "[request] {} prompts, n {}, {}{} {}, prompt_logprobs {}: the answer may take {} bytes, {} allowed "
      "(max_answer_bytes); lower one of these, or max_tokens",
      call.requests.size(), first.n, call.echo ? "echo, " : "", logprobs, first.logprobs,
      call.prompt_logprobs.value_or(0), bytes, most);
  return std::unexpected(std::move(error));
}

// Refuses tools where the template writes the same prompt without them: the model would answer as if there were none.
ApiResult<void> check_tools_are_read(ServerCore& core, const ServedModel& model, const Request& request) {
  if (!request.tools || core.models.reads_tools(model, request.chat_template_kwargs.value_or(""))) return {};
  return std::unexpected(tools_not_read(model));
}

// A path that generates: how its bodies are read, and how its answers' ids begin.
struct Endpoint {
  const char* path;
  Parse parse;
  const char* prefix;
};

// What a body asks for, before its model is known.
struct Asked {
  GenerationCall call;
  std::vector<std::string> ignored;
};

ApiResult<std::shared_ptr<Asked>> read_call(ServerCore& core, Exchange& exchange, const Endpoint& endpoint) {
  ApiError wrong;
  if (const auto why = core.why_not_ready(); !why.empty()) {
    core.metrics.refused("not_ready");
    wrong.status = 503;
    wrong.message = "[server] " + why;
    wrong.retry_after_s = 5;
    return std::unexpected(std::move(wrong));
  }
  if (!exchange.caller.tenant) {
    wrong.status = 403;
    wrong.message = "[keys] this is an admin's key; requests need one of a tenant";
    return std::unexpected(std::move(wrong));
  }
  ZRT_TRY(auto body, read_object(exchange.request));
  std::string().swap(exchange.request.body);
  // Azure's paths name the model, whatever the body says.
  if (const auto named = exchange.params.find("model"); named != exchange.params.end()) body["model"] = named->second;
  Request defaults;
  defaults.temperature = 1;
  // Without keys a request may ask for any class; a request that asks for none is a standard one.
  if (exchange.caller.is_admin) defaults.qos = "standard";
  auto asked = std::make_shared<Asked>();
  ZRT_TRY(asked->call, endpoint.parse(body, defaults, core.is_tolerant ? &asked->ignored : nullptr));
  return asked;
}

ApiResult<std::shared_ptr<GenerationJob>> make_job(ServerCore& core, Exchange& exchange, const Endpoint& endpoint,
                                                   Asked& asked, const ServedModel& model) {
  JobCall call;
  call.call = std::move(asked.call);
  ZRT_CHECK_OK(check_tools_are_read(core, model, call.call.requests.front()));
  ZRT_CHECK_OK(check_answer_size(call.call, model, core.max_answer_bytes));
  call.engine_model = model.engine_name;
  call.model_hold = model.hold;
  call.max_context = model.max_context;
  call.endpoint = endpoint.path;  // not the path as written, which may name a model
  call.head.api = call.call.api;
  call.head.id = endpoint.prefix + new_id();  // the ledger's key, so it is never chosen by a client
  call.head.model = model.id;
  call.head.created_s = static_cast<std::int64_t>(std::time(nullptr));
  call.head.fingerprint = fmt::format("zrt-{}-{}", kVersion, model.card.arithmetic);
  const auto& tier = call.call.service_tier;
  if (!tier.empty()) call.head.service_tier = tier == "auto" ? "default" : tier;
  if (call.call.prompt_opens_reasoning)
    call.prompt_opens_reasoning = *call.call.prompt_opens_reasoning;
  else if (call.call.split_reasoning)
    call.prompt_opens_reasoning =
        core.models.prompt_opens_reasoning(model, call.call.requests.front().chat_template_kwargs.value_or(""));
  call.headers.emplace_back("x-request-id", exchange.id);
  if (!asked.ignored.empty()) {
    const auto names = header_of_names(asked.ignored);
    call.headers.emplace_back(kIgnoredHeader, names);
    exchange.connection->note("ignored_fields", names);
  }
  exchange.connection->note("id", call.head.id);
  exchange.connection->note("model", call.head.model);
  call.tenant = exchange.caller.tenant;
  ZRT_TRY(const auto n_choices, count_choices(*call.tenant, model, call.call));
  if (const auto open = call.tenant->open_request(n_choices, call.headers); !open) {
    core.metrics.refused("rate");
    return std::unexpected(open.error());
  }
  call.traceparent = traceparent_of(exchange.request);
  call.connection = exchange.connection;
  call.gone = exchange.gone.get_token();
  if (call.call.resumable)
    call.connection =
        std::make_shared<ResumableStream>(core.streams, call.head.id, call.tenant->name, exchange.connection);
  return std::make_shared<GenerationJob>(JobServices{core.engine, *core.store, core.metrics, core.ends},
                                         std::move(call));
}

void refuse(ServerCore& core, Exchange& exchange, ApiError error) {
  if (exchange.caller.tenant) exchange.caller.tenant->tell_rates(error.headers);
  answer(core, exchange, error);
}

void start_job(ServerCore& core, Exchange& exchange, const Endpoint& endpoint, Asked& asked,
               const ApiResult<ServedModel>& model) {
  const auto job = model ? make_job(core, exchange, endpoint, asked, *model) : std::unexpected(model.error());
  if (!job) {
    if (job.error().status == 400) core.metrics.refused("invalid");
    return refuse(core, exchange, job.error());
  }
  if (const auto started = (*job)->start(); !started) {
    core.metrics.refused(started.error().status == 503 ? "queue" : "invalid");
    refuse(core, exchange, started.error());
  }
}

void add_generation_route(Router& router, ServerCore& core, const Endpoint& endpoint) {
  router.add({"POST", endpoint.path, Access::kKey, false, [&core, endpoint](Exchange& exchange) {
                auto asked = read_call(core, exchange, endpoint);
                if (!asked) {
                  if (asked.error().status == 400) core.metrics.refused("invalid");
                  return refuse(core, exchange, asked.error());
                }
                const auto& name = (*asked)->call.requests.front().model;
                auto asker = asker_of(exchange);
                auto held = std::make_shared<Exchange>(std::move(exchange));
                core.on_demand.find(name, std::move(asker),
                                    [&core, endpoint, asked = *asked, held](const ApiResult<ServedModel>& model) {
                                      start_job(core, *held, endpoint, *asked, model);
                                    });
              }});
}

}  // namespace

void add_generation_routes(Router& router, ServerCore& core) {
  for (const Endpoint& endpoint : {Endpoint{"/v1/chat/completions", parse_chat, "chatcmpl-"},
                                   {"/chat/completions", parse_chat, "chatcmpl-"},
                                   {"/openai/deployments/{model}/chat/completions", parse_chat, "chatcmpl-"},
                                   {"/openai/deployments/{model}/completions", parse_completion, "cmpl-"},
                                   {"/v1/completions", parse_completion, "cmpl-"},
                                   {"/completions", parse_completion, "cmpl-"},
                                   {"/generate", parse_generate, "gen-"}})
    add_generation_route(router, core, endpoint);
}

}  // namespace zinc_rt::server
