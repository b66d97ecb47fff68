// Handles /v1/rerank and /v1/score: how well texts answer a query, by a cross-encoder or by the cosine of embeddings.
#include <fmt/format.h>

#include "base/error.h"
#include "server/api/rerank.h"
#include "server/core.h"
#include "server/embedding_task.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

constexpr const char* pair_field(PairForm form, bool is_first) {
  constexpr const char* kFields[][2] = {{"documents", "query"}, {"text_2", "text_1"}};
  return kFields[form == PairForm::kScore ? 1 : 0][is_first ? 1 : 0];
}

// Returns the place of a text in the body, such as "documents[3]", or only the field's name if the field has a single
// text.
EmbeddingTask::Place place_in(const PairCall& call, bool is_first, std::size_t i) {
  const std::string field = pair_field(call.form, is_first);
  return {field, (is_first ? call.first : call.second).size() > 1 ? fmt::format("{}[{}]", field, i) : field};
}

// PairsByModel is the task for a model with pooling `rank`, which computes scores. It has one request per pair.
class PairsByModel final : public EmbeddingTask {
 public:
  explicit PairsByModel(PairCall call) : call_(std::move(call)) {}
  std::size_t size() const override { return call_.second.size(); }
  Request request(std::size_t i) const override {
    Request q = call_.requests[0];
    q.prompt = call_.first_of(i);
    q.text_pair = call_.second[i];
    return q;
  }
  Place place(std::size_t i, const Error&) const override { return place_in(call_, false, i); }
  std::string answer(EmbeddingAnswer results) const override { return pair_answer(call_, results, results.scores); }

 private:
  PairCall call_;
};

// PairsByCosine is the task for a model that computes embeddings. It has one request per text: first the first texts of
// all pairs, then the second texts.
class PairsByCosine final : public EmbeddingTask {
 public:
  explicit PairsByCosine(PairCall call) : call_(std::move(call)) {}
  std::size_t size() const override { return call_.first.size() + call_.second.size(); }
  Request request(std::size_t i) const override {
    Request q = call_.requests[0];
    q.prompt = i < call_.first.size() ? call_.first[i] : call_.second[i - call_.first.size()];
    return q;
  }
  Place place(std::size_t i, const Error&) const override {
    const bool is_first = i < call_.first.size();
    return place_in(call_, is_first, is_first ? i : i - call_.first.size());
  }
  std::string answer(EmbeddingAnswer results) const override {
    std::vector<double> scores;
    for (std::size_t i = 0; i < call_.second.size(); ++i) {
      const auto& a = results.embeddings[call_.first.size() == 1 ? 0 : i];
      const auto& b = results.embeddings[call_.first.size() + i];
      double cosine = 0;  // the dot product, because the embeddings have length 1
      for (std::size_t k = 0; k < a.size(); ++k) cosine += double{a[k]} * b[k];
      scores.push_back(cosine);
    }
    return pair_answer(call_, results, scores);
  }

 private:
  PairCall call_;
};

ApiResult<std::unique_ptr<EmbeddingTask>> make_task(const ServerCore& core, const ServedModel& model, PairCall& call) {
  if (model.card.pooling.empty())
    return std::unexpected(make_error(400,
                                      fmt::format("[rerank] model \"{}\" generates and scores no texts; a "
                                                  "cross-encoder does (pooling rank), and a model loaded "
                                                  "with pooling = \"mean\" or \"last\" by the cosine of embeddings",
                                                  model.id),
                                      "model"));
  if (const auto bytes = pair_answer_bytes(call); bytes > core.max_answer_bytes)
    return std::unexpected(make_error(
        400,
        fmt::format(
            "[request] {} pairs: the answer may take {} bytes, {} allowed (max_answer_bytes); give fewer texts{}",
            call.second.size(), bytes, core.max_answer_bytes.load(),
            call.returns_documents ? ", or leave return_documents out" : ""),
        pair_field(call.form, false)));
  if (model.card.pooling == "rank") return std::make_unique<PairsByModel>(std::move(call));
  return std::make_unique<PairsByCosine>(std::move(call));
}

template <ApiResult<PairCall> (*kParse)(const Json& body, const Request& defaults, Ignored ignored)>
ApiResult<WantedTask> read_pairs(const Json& body, const Exchange& exchange, Ignored ignored) {
  ZRT_TRY(auto parsed, kParse(body, default_request(exchange), ignored));
  set_class(exchange, parsed.requests);
  const auto call = std::make_shared<PairCall>(std::move(parsed));
  return WantedTask{call->requests.front().model,
                    [call](const ServerCore& core, const ServedModel& model) { return make_task(core, model, *call); }};
}

constexpr TaskPath kRerankPaths[] = {
    {"/v1/rerank", read_pairs<parse_rerank>, "rerank-"}, {"/v2/rerank", read_pairs<parse_rerank>, "rerank-"},
    {"/rerank", read_pairs<parse_rerank>, "rerank-"},    {"/v1/score", read_pairs<parse_score>, "score-"},
    {"/score", read_pairs<parse_score>, "score-"},
};

}  // namespace

void add_rerank_routes(Router& router, ServerCore& core) {
  for (const TaskPath& path : kRerankPaths) add_task_route(router, core, path);
}

}  // namespace zinc_rt::server
