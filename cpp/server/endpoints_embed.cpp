// /v1/embeddings, and Ollama's /api/embed and /api/embeddings.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "server/answer_writer.h"
#include "server/core.h"
#include "server/embedding_job.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

constexpr std::uint32_t kEmbeddingWindow = 64;  // inputs of a call that are under way at once, at most

// A path, and how its bodies are read and its errors written.
struct EmbeddingPath {
  const char* path;
  ApiResult<EmbeddingCall> (*parse)(const Json& body, const Request& defaults, Ignored ignored);
  MakeErrorResponse make_error;
};
constexpr EmbeddingPath kPaths[] = {
    {"/v1/embeddings", parse_embedding, error_response},
    {"/embeddings", parse_embedding, error_response},
    {"/openai/deployments/{model}/embeddings", parse_embedding, error_response},
    {"/api/embed", parse_ollama_embed, ollama_error},
    {"/api/embeddings", parse_ollama_embeddings, ollama_error},
};

// What a body asks for, before its model is known.
struct WantedEmbeddings {
  EmbeddingCall call;
  std::vector<std::string> ignored;
};

ApiResult<void> check_embeds(const ServerCore& core, const EmbeddingCall& call, const ServedModel& model) {
  ApiError wrong;
  wrong.param = "model";
  if (model.card.pooling.empty()) {
    wrong.message = fmt::format(
        "[embeddings] model \"{}\" generates and gives no embeddings; loaded with pooling = \"mean\" or \"last\" it "
        "gives them and generates nothing",
        model.id);
    return std::unexpected(std::move(wrong));
  }
  if (call.wanted_context > model.max_context) {
    wrong.param = "options.num_ctx";
    wrong.message = fmt::format("[request] options.num_ctx: {} is given, the model has a context of {}",
                                call.wanted_context, model.max_context);
    return std::unexpected(std::move(wrong));
  }
  const std::uint32_t dimensions = call.requests.front().dimensions;
  if (dimensions > model.card.embedding_dim) {
    wrong.param = "dimensions";
    wrong.message = fmt::format("[request] dimensions: {} is given, 1 to {} allowed (model \"{}\")", dimensions,
                                model.card.embedding_dim, model.id);
    return std::unexpected(std::move(wrong));
  }
  const auto bytes = embedding_answer_bytes(call, model.card.embedding_dim);
  if (bytes > core.max_answer_bytes) {
    wrong.param = "input";
    wrong.message = fmt::format(
        "[request] {} inputs: the answer may take {} bytes, {} allowed (max_answer_bytes); give fewer inputs or "
        "dimensions, or encoding_format \"base64\"",
        call.requests.size(), bytes, core.max_answer_bytes.load());
    return std::unexpected(std::move(wrong));
  }
  return {};
}

ApiResult<std::shared_ptr<EmbeddingJob>> make_embedding_job(ServerCore& core, Exchange& exchange,
                                                            const EmbeddingPath& path, WantedEmbeddings& wanted,
                                                            const ServedModel& model) {
  ZRT_CHECK_OK(check_embeds(core, wanted.call, model));
  EmbeddingJobCall call;
  call.call = std::move(wanted.call);
  call.id = "embd-" + new_id();
  call.model = model.id;
  call.endpoint = path.path;
  call.make_error = path.make_error;
  call.engine_model = model.engine_name;
  call.model_hold = model.hold;
  call.max_context = model.max_context;
  call.tenant = exchange.caller.tenant;
  const auto most = std::max<std::uint64_t>(1, call.tenant->settings().max_open_requests);
  call.window =
      static_cast<std::uint32_t>(std::min({std::uint64_t{kEmbeddingWindow}, std::uint64_t{call.call.requests.size()},
                                           most, std::uint64_t{model.queue_cap}}));
  call.owner = asker_of(exchange).owner;
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

void start_embedding(ServerCore& core, Exchange& exchange, const EmbeddingPath& path, WantedEmbeddings& wanted,
                     const ApiResult<ServedModel>& model) {
  const auto job = model ? make_embedding_job(core, exchange, path, wanted, *model) : std::unexpected(model.error());
  if (job) return (*job)->start();
  if (job.error().status == 400) core.metrics.refused("invalid");
  refuse(core, exchange, job.error(), path.make_error);
}

void take_embedding_call(ServerCore& core, Exchange& exchange, const EmbeddingPath& path) {
  auto wanted = std::make_shared<WantedEmbeddings>();
  auto call = [&]() -> ApiResult<EmbeddingCall> {
    ZRT_TRY(const auto body, take_body(core, exchange));
    ZRT_TRY(auto read, path.parse(body, default_request(exchange), core.is_tolerant ? &wanted->ignored : nullptr));
    set_class(exchange, read.requests);
    return read;
  }();
  if (!call) {
    if (call.error().status == 400) core.metrics.refused("invalid");
    return refuse(core, exchange, call.error(), path.make_error);
  }
  wanted->call = std::move(*call);
  const std::string name = wanted->call.requests.front().model;
  auto asker = asker_of(exchange);
  auto held = std::make_shared<Exchange>(std::move(exchange));
  core.on_demand.find(name, std::move(asker), [&core, &path, wanted, held](const ApiResult<ServedModel>& model) {
    start_embedding(core, *held, path, *wanted, model);
  });
}

}  // namespace

void add_embedding_routes(Router& router, ServerCore& core) {
  for (const EmbeddingPath& path : kPaths)
    router.add({"POST", path.path, Access::kKey, false,
                [&core, &path](Exchange& exchange) { take_embedding_call(core, exchange, path); }});
}

}  // namespace zinc_rt::server
