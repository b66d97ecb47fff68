#include "server/answers/answer_body.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace zinc_rt::server {
namespace {

constexpr const char* kBadLogits = "bad_logits";  // the engine's finish reason for such requests

}  // namespace

AnswerBody::AnswerBody(const Engine& engine, std::string engine_model, AnswerHead head, GenerationCall call,
                       MakeWriter make_writer)
    : engine_(engine),
      engine_model_(std::move(engine_model)),
      head_(std::move(head)),
      call_(std::move(call)),
      names_(engine, engine_model_),
      n_(call_.requests.front().n),
      writer_(make_writer({head_, call_, names_})),
      has_begun_(call_.requests.size() * n_) {}

Request AnswerBody::take_request(std::uint32_t prompt) {
  Request request = call_.echo ? call_.requests[prompt] : std::move(call_.requests[prompt]);
  request.model = engine_model_;
  request.request_id = head_.id;
  return request;
}

std::string AnswerBody::echo_of(std::uint32_t prompt) const {
  const Request& request = call_.requests[prompt];
  if (!call_.echo) return {};
  if (request.prompt) return *request.prompt;
  return engine_.detokenize(*request.token_ids, false, engine_model_).value_or("");
}

std::string AnswerBody::part(std::uint32_t prompt, const StreamEvent& event) {
  const std::uint32_t choice = prompt * n_ + event.index;
  auto& has_begun = has_begun_[choice];
  auto text = writer_->part({choice, has_begun == 0, has_begun != 0 ? std::string() : echo_of(prompt), event});
  if (!text.empty()) has_begun = 1;
  return text;
}

std::string AnswerBody::end_choice(std::uint32_t prompt, std::uint32_t index, const RequestHandle& handle) {
  const auto all = handle.completion();
  const auto& completion = all.choices.empty() ? all : all.choices[index];
  const std::uint32_t choice = prompt * n_ + index;
  const bool is_first = has_begun_[choice] == 0;
  return writer_->end_choice({choice, is_first ? echo_of(prompt) : std::string(), completion, completion}, is_first);
}

std::string AnswerBody::whole(std::span<const RequestHandle> handles, const AnswerTotals& totals) {
  std::vector<Completion> all;
  for (const auto& handle : handles) {
    auto c = handle.completion();
    if (c.choices.empty())
      all.push_back(std::move(c));
    else
      std::ranges::move(c.choices, std::back_inserter(all));
  }
  std::vector<AnswerChoice> choices;
  for (std::uint32_t i = 0; i < all.size(); ++i) choices.push_back({i, echo_of(i / n_), all[i], all[i - i % n_]});
  return writer_->whole(choices, totals);
}

AnswerSum sum_up(std::span<const RequestHandle> handles) {
  AnswerSum sum;
  Usage& usage = sum.totals.usage;
  for (const auto& handle : handles) {
    const auto c = handle.completion();
    usage.prompt_tokens += c.usage.prompt_tokens;
    usage.completion_tokens += c.usage.completion_tokens;
    usage.cached_tokens += c.usage.cached_tokens;
    usage.reasoning_tokens += c.usage.reasoning_tokens;
    usage.accepted_prediction_tokens += c.usage.accepted_prediction_tokens;
    usage.rejected_prediction_tokens += c.usage.rejected_prediction_tokens;
    if (&handle == &handles.front()) sum.totals.timings = c.timings;
    if (sum.finish.empty() || c.finish_reason == kBadLogits) sum.finish = c.finish_reason;
    if (const auto status = handle.wait(); !status && !sum.error) sum.error = status.error();
  }
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  if (sum.error && sum.finish != kBadLogits) sum.finish = "error";
  return sum;
}

}  // namespace zinc_rt::server
