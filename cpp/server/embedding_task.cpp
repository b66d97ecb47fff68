// Handles the routes of embeddings and scores: reads the body and creates the embedding job.
#include "server/embedding_task.h"

#include <algorithm>

#include "base/error.h"
#include "server/answers/answer_writer.h"
#include "server/api/error_forms.h"
#include "server/core.h"
#include "server/embedding_job.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

constexpr std::uint32_t kEmbeddingWindow = 64;  // how many inputs of a call are in the engine at once, at most

struct WantedJob {
  WantedTask task;
  std::vector<std::string> ignored;
};

ApiResult<std::shared_ptr<EmbeddingJob>> make_embedding_job(ServerCore& core, Exchange& exchange, const TaskPath& path,
                                                            const WantedJob& wanted, const ServedModel& model) {
  EmbeddingJobCall call;
  ZRT_TRY(call.task, wanted.task.make(core, model));
  call.id = path.prefix + new_id();
  call.model = model.id;
  call.endpoint = path.path;
  call.make_error = error_form_of(exchange.request.path);
  call.engine_model = model.engine_name;
  call.model_hold = model.hold;
  call.max_context = model.max_context;
  call.tenant = exchange.caller.tenant;
  const auto most = std::max<std::uint64_t>(1, call.tenant->settings().max_open_requests);
  call.window = static_cast<std::uint32_t>(std::min(
      {std::uint64_t{kEmbeddingWindow}, std::uint64_t{call.task->size()}, most, std::uint64_t{model.queue_cap}}));
  call.owner = owner_of(exchange);
  call.headers.emplace_back("x-request-id", exchange.id);
  note_ignored(wanted.ignored, exchange, call.headers);
  exchange.connection->note("id", call.id);
  exchange.connection->note("model", call.model);
  if (const auto open = call.tenant->open_request(call.window, call.headers); !open) {
    core.metrics.refused("rate");
    return std::unexpected(open.error());
  }
  call.traceparent = traceparent_of(exchange.request);
  call.connection = exchange.connection;
  call.gone = exchange.gone.get_token();
  return std::make_shared<EmbeddingJob>(
      EmbeddingServices{*core.store, core.metrics, core.work, core.ends, core.n_embedding}, std::move(call));
}

void start_embedding(ServerCore& core, Exchange& exchange, const TaskPath& path, const WantedJob& wanted,
                     const ApiResult<ServedModel>& model) {
  const auto job = model ? make_embedding_job(core, exchange, path, wanted, *model) : std::unexpected(model.error());
  if (job) return (*job)->start();
  if (job.error().status == 400) core.metrics.refused("invalid");
  refuse(core, exchange, job.error());
}

void take_task(ServerCore& core, Exchange& exchange, const TaskPath& path) {
  auto wanted = std::make_shared<WantedJob>();
  auto task = [&]() -> ApiResult<WantedTask> {
    ZRT_TRY(const auto body, take_body(core, exchange));
    return path.read(body, exchange, core.is_tolerant ? &wanted->ignored : nullptr);
  }();
  if (!task) {
    if (task.error().status == 400) core.metrics.refused("invalid");
    return refuse(core, exchange, task.error());
  }
  wanted->task = std::move(*task);
  find_model(core, exchange, wanted->task.model,
             [&core, &path, wanted](Exchange& held, const ApiResult<ServedModel>& model) {
               start_embedding(core, held, path, *wanted, model);
             });
}

}  // namespace

void add_task_route(Router& router, ServerCore& core, const TaskPath& path) {
  router.add({"POST", path.path, Access::kKey, false,
              [&core, &path](Exchange& exchange) { take_task(core, exchange, path); }});
}

}  // namespace zinc_rt::server
