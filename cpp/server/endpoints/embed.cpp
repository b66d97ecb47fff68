// Handles /v1/embeddings, and Ollama's /api/embed and /api/embeddings.
#include <fmt/format.h>

#include "base/error.h"
#include "server/answers/answer_writer.h"
#include "server/api/request_checks.h"
#include "server/core.h"
#include "server/embedding_task.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

ApiResult<void> check_embeds(const ServerCore& core, const EmbeddingCall& call, const ServedModel& model) {
  const auto wrong_model = [](std::string message) {
    return std::unexpected(make_error(400, std::move(message), "model"));
  };
  if (model.card.pooling.empty())
    return wrong_model(fmt::format(
        "[embeddings] model \"{}\" generates and gives no embeddings; loaded with pooling = \"mean\" or \"last\" it "
        "gives them and generates nothing",
        model.id));
  if (model.card.pooling == "rank")
    return wrong_model(fmt::format(
        "[embeddings] model \"{}\" scores pairs of texts (pooling rank) and gives no embeddings; POST /v1/rerank and "
        "/v1/score ask for scores",
        model.id));
  ZRT_CHECK_OK(check_context(call.wanted_context, model.max_context));
  const std::uint32_t dimensions = call.requests.front().dimensions;
  if (dimensions > model.card.embedding_dim)
    return wrong_field("dimensions", fmt::format("{} is given, 1 to {} allowed (model \"{}\")", dimensions,
                                                 model.card.embedding_dim, model.id));
  const auto bytes = embedding_answer_bytes(call, model.card.embedding_dim);
  if (bytes <= core.max_answer_bytes) return {};
  return std::unexpected(make_error(
      400,
      fmt::format(
          "[request] {} inputs: the answer may take {} bytes, {} allowed (max_answer_bytes); give fewer inputs or "
          "dimensions, or encoding_format \"base64\"",
          call.requests.size(), bytes, core.max_answer_bytes.load()),
      "input"));
}

class TextEmbeddings final : public EmbeddingTask {
 public:
  explicit TextEmbeddings(EmbeddingCall call) : call_(std::move(call)) {}
  std::size_t size() const override { return call_.requests.size(); }
  Request request(std::size_t i) const override { return call_.requests[i]; }
  void forget(std::size_t i) override { call_.requests[i] = {}; }
  Place place(std::size_t i, const Error& error) const override {
    return {error.field == "dimensions" ? "dimensions" : "input", size() > 1 ? fmt::format("input[{}]", i) : ""};
  }
  std::string answer(EmbeddingAnswer results) const override { return embedding_answer(call_.form, results); }

 private:
  EmbeddingCall call_;
};

template <ApiResult<EmbeddingCall> (*kParse)(const Json& body, const Request& defaults, Ignored ignored)>
ApiResult<WantedTask> read_embedding(const Json& body, const Exchange& exchange, Ignored ignored) {
  ZRT_TRY(auto parsed, kParse(body, default_request(exchange), ignored));
  set_class(exchange, parsed.requests);
  const auto call = std::make_shared<EmbeddingCall>(std::move(parsed));
  return WantedTask{
      call->requests.front().model,
      [call](const ServerCore& core, const ServedModel& model) -> ApiResult<std::unique_ptr<EmbeddingTask>> {
        ZRT_CHECK_OK(check_embeds(core, *call, model));
        return std::make_unique<TextEmbeddings>(std::move(*call));
      }};
}

constexpr TaskPath kEmbeddingPaths[] = {
    {"/v1/embeddings", read_embedding<parse_embedding>},
    {"/embeddings", read_embedding<parse_embedding>},
    {"/openai/deployments/{model}/embeddings", read_embedding<parse_embedding>},
    {"/api/embed", read_embedding<parse_ollama_embed>},
    {"/api/embeddings", read_embedding<parse_ollama_embeddings>},
};

}  // namespace

void add_embedding_routes(Router& router, ServerCore& core) {
  for (const TaskPath& path : kEmbeddingPaths) add_task_route(router, core, path);
}

}  // namespace zinc_rt::server
