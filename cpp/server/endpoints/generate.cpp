// Handles the generating endpoints: /v1/chat/completions, /v1/completions, /generate, and those of the other APIs.
#include <fmt/format.h>

#include <algorithm>

#include "base/conversation.h"
#include "base/error.h"
#include "server/answers/generation_apis.h"
#include "server/api/error_forms.h"
#include "server/api/request_checks.h"
#include "server/core.h"
#include "server/generation_job.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

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

// ParsedCall is what was read from a body whose model has not been found yet.
struct ParsedCall {
  GenerationCall call;
  std::vector<std::string> ignored;
  ByteBudget::Hold held;  // counts a conversation that was loaded or will be stored
};

ApiResult<std::shared_ptr<ParsedCall>> read_call(ServerCore& core, Exchange& exchange, const GenerationApi& api) {
  ZRT_TRY(auto body, take_body(core, exchange));
  auto parsed = std::make_shared<ParsedCall>();
  if (api.has_conversations) ZRT_CHECK_OK(find_earlier_response(core, exchange, body, parsed->held));
  ZRT_TRY(parsed->call, api.parse(body, default_request(exchange), core.is_tolerant ? &parsed->ignored : nullptr));
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

ApiResult<std::shared_ptr<GenerationJob>> make_job(ServerCore& core, Exchange& exchange, const GenerationApi& api,
                                                   ParsedCall& parsed, const ServedModel& model) {
  ZRT_CHECK_OK(check_generates(model.card, model.id));
  GenerationCall& call = parsed.call;
  if (const Request& first = call.requests.front(); first.conversation)
    ZRT_CHECK_OK(check_tools_are_read(core, model, *first.conversation));
  ZRT_CHECK_OK(check_answer_size(call, model.max_context, core.max_answer_bytes));
  ZRT_CHECK_OK(check_context(call.wanted_context, model.max_context));
  JobContext job;
  job.engine_model = model.engine_name;
  job.model_hold = model.hold;
  job.max_context = model.max_context;
  job.make_writer = api.make_writer;
  job.make_error = error_form_of(exchange.request.path);
  job.endpoint = api.path;  // not the path in the request, because that may contain a model's name
  // The id is the key in the ledger, so clients must not choose it.
  job.head = make_head(api, call, new_id(), model.id, model.card);
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

void start_job(ServerCore& core, Exchange& exchange, const GenerationApi& api, ParsedCall& parsed,
               const ApiResult<ServedModel>& model) {
  if (model && parsed.call.only_loads) return answer(core, exchange, api.loaded(parsed.call.api, model->id, false));
  const auto job = model ? make_job(core, exchange, api, parsed, *model) : std::unexpected(model.error());
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
void give_back(ServerCore& core, Exchange& exchange, const GenerationApi& api, const GenerationCall& call) {
  const auto& name = call.requests.front().model;
  const auto id = [&]() -> ApiResult<std::string> {
    if (const auto loaded = core.models.find(name)) return loaded->id;
    ZRT_TRY(const auto offered, core.on_demand.find_offered(name));
    return offered.id;
  }();
  if (!id) return refuse(core, exchange, id.error());
  if (exchange.caller.is_admin) core.on_demand.release(*id);
  answer(core, exchange, api.loaded(call.api, *id, true));
}

void add_generation_route(Router& router, ServerCore& core, const GenerationApi& api) {
  router.add({"POST", api.path, Access::kKey, false, [&core, &api](Exchange& exchange) {
                auto parsed = read_call(core, exchange, api);
                if (!parsed) {
                  if (parsed.error().status == 400) core.metrics.refused("invalid");
                  return refuse(core, exchange, parsed.error());
                }
                if (const auto& call = (*parsed)->call; call.only_loads && call.gives_model_back)
                  return give_back(core, exchange, api, call);
                find_model(core, exchange, (*parsed)->call.requests.front().model,
                           [&core, &api, parsed = *parsed](Exchange& held, const ApiResult<ServedModel>& model) {
                             start_job(core, held, api, *parsed, model);
                           });
              }});
}

}  // namespace

void add_generation_routes(Router& router, ServerCore& core) {
  for (const GenerationApi& api : generation_apis()) add_generation_route(router, core, api);
}

}  // namespace zinc_rt::server
