// Computes logits and hidden states of a text that belongs to no request, in a leased slot, between the steps of
// requests.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "engine/core.h"
#include "engine/lease.h"

namespace zinc_rt {

std::vector<EngineCore::Span> EngineCore::variant_spans(const Model& model, std::size_t n_tokens) {
  std::vector<Span> spans;
  std::size_t begin = 0;
  std::uint32_t variant = 0;
  for (const std::uint32_t limit : model.info().rope_limits) {
    if (begin < n_tokens && begin < limit) spans.push_back({begin, std::min<std::size_t>(limit, n_tokens), variant});
    begin = std::max<std::size_t>(begin, limit);
    ++variant;
  }
  if (begin < n_tokens) spans.push_back({begin, n_tokens, variant});
  return spans;
}

Result<std::vector<float>> EngineCore::logits(Model& model, std::span<const std::int32_t> ids, LogitsRows rows,
                                              std::uint32_t chunk, const StopAsked& is_stopped) {
  if (ids.empty()) return fail(StatusCode::kInvalidArgument, "[logits] no tokens");
  if (model.info().pooling != Pooling::kNone)
    return fail(StatusCode::kUnavailable, "[logits] model \"{}\" gives embeddings (pooling {}) and has no logits",
                model.name(), to_string(model.info().pooling));
  if (chunk > model.info().chunk_cap)
    return fail(StatusCode::kInvalidArgument, "[logits] chunk {}, at most {} (chunk_cap)", chunk,
                model.info().chunk_cap);
  auto spans = variant_spans(model, ids.size());
  if (rows == LogitsRows::kLast) {
    spans.erase(spans.begin(), spans.end() - 1);
    spans[0].begin = ids.size() - 1;
  }
  ZRT_TRY(const auto lease, Lease::take(*this, model, ids.size()));
  const std::size_t step_size = chunk > 0 ? chunk : model.info().chunk_cap;
  std::vector<float> out;
  out.reserve((ids.size() - spans[0].begin) * model.config().vocab_size);
  const auto keep = [&](std::uint32_t, std::span<const float> values) {
    out.insert(out.end(), values.begin(), values.end());
  };
  for (const Span& span : spans)
    for (std::size_t at = 0; at < span.end; at += step_size) {
      const std::size_t n = std::min(step_size, span.end - at), first = std::min(std::max(at, span.begin) - at, n);
      std::vector<std::uint32_t> wanted(n - first);
      std::iota(wanted.begin(), wanted.end(), static_cast<std::uint32_t>(first));
      ZRT_CHECK_OK(go_on(is_stopped, "logits"));
      const StepLoop::Pause pause(lease.replica().loop());
      ZRT_CHECK_OK(check_loaded(model, lease.replica()));
      ZRT_CHECK_OK(lease.replica().runner().run(lease.slot(), ids, at, n, span.variant, wanted, keep));
    }
  return out;
}

Result<std::vector<float>> EngineCore::hidden(Model& model, std::span<const std::int32_t> ids, int layer,
                                              const StopAsked& is_stopped) {
  if (ids.empty()) return fail(StatusCode::kInvalidArgument, "[hidden] no tokens");
  ZRT_TRY(const auto lease, Lease::take(*this, model, ids.size()));
  const std::size_t step_size = model.info().chunk_cap;
  std::vector<float> out;
  for (const Span& span : variant_spans(model, ids.size()))
    for (std::size_t at = 0; at < span.end; at += step_size) {
      const std::size_t n = std::min(step_size, span.end - at);
      ZRT_CHECK_OK(go_on(is_stopped, "hidden"));
      const StepLoop::Pause pause(lease.replica().loop());
      ZRT_CHECK_OK(check_loaded(model, lease.replica()));
      ZRT_TRY(const auto part, lease.replica().runner().hidden(lease.slot(), ids, at, n, span.variant, layer));
      const std::size_t skipped = std::min(std::max(at, span.begin) - at, n) * model.config().model_dim;
      out.insert(out.end(), part.begin() + static_cast<std::ptrdiff_t>(skipped), part.end());
    }
  return out;
}

// ZINC_RT_BATCHED_PREFILL=validate: prefills a request's prompt in two ways, each with its own pages. In `exact`
// arithmetic the logits of the last prompt token must have the same bits both times.
Status EngineCore::validate_prefill(Model& model, std::span<const std::int32_t> prompt) {
  ZRT_TRY(const auto batched, logits(model, prompt, LogitsRows::kLast, 0));
  ZRT_TRY(const auto single, logits(model, prompt, LogitsRows::kLast, 1));
  float largest = 0;
  for (std::size_t i = 0; i < batched.size(); ++i) {
    const float difference = std::fabs(batched[i] - single[i]);
    largest = difference <= largest ? largest : difference;
  }
  log().info("prefill of {} tokens in chunks of {} and token by token: largest difference of the last logits {}",
             prompt.size(), model.info().chunk_cap, largest);
  if (float seen = model.largest_prefill_difference.load(); !(largest <= seen))
    model.largest_prefill_difference.store(largest);
  if (!(largest == 0) && model.info().arithmetic == Arithmetic::kExact)
    return fail(StatusCode::kInternal,
                "[prefill] batched and token-by-token prefill of {} tokens differ by {}, 0 wanted in exact",
                prompt.size(), largest);
  return {};
}

}  // namespace zinc_rt
