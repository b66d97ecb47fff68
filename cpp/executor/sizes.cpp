#include "executor/sizes.h"

#include <algorithm>

#include "base/error.h"
#include "mem/page_pool.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kDefaultContext = 32768;
constexpr std::uint32_t kMaxOutputs = 64;
constexpr std::uint32_t kMaxSlots = 4096;
constexpr std::uint32_t kMaxCheckpoints = 1u << 16;
constexpr std::uint64_t kMaxPages = 1u << 26;

}  // namespace

Result<Sizes> choose_sizes(const ExecutorOptions& options, const ModelConfig& config) {
  Sizes s;
  if (options.max_slots < 1 || options.max_slots > kMaxSlots)
    return fail(StatusCode::kInvalidArgument, "[executor] max_slots {} is not from 1 to {}", options.max_slots,
                kMaxSlots);
  s.max_slots = options.max_slots;
  if (options.state_checkpoints > kMaxCheckpoints)
    return fail(StatusCode::kInvalidArgument, "[executor] state_checkpoints {} exceeds {}", options.state_checkpoints,
                kMaxCheckpoints);
  s.state_entries = options.max_slots + options.state_checkpoints;
  const std::uint32_t context =
      options.max_context > 0 ? options.max_context : std::min(config.context_length, kDefaultContext);
  if (context > config.context_length)
    return fail(StatusCode::kInvalidArgument, "[executor] max_context {} exceeds the model's context of {} tokens",
                context, config.context_length);
  s.max_context = mem::pages_for(context) * mem::kPageTokens;
  if (std::uint64_t{s.max_slots} * s.max_context > UINT32_MAX)
    return fail(StatusCode::kInvalidArgument, "[executor] {} slots of {} tokens exceed {} tokens in all", s.max_slots,
                s.max_context, UINT32_MAX);
  s.history_tokens = s.max_slots * s.max_context;
  s.bias_entries = s.max_slots * kMaxBias;
  const std::uint32_t chunk = options.chunk_cap > 0 ? options.chunk_cap : kDefaultChunk;
  s.max_tokens = std::max(std::min(chunk, s.max_context), s.max_slots);
  s.max_outputs = std::max(std::min(s.max_tokens, kMaxOutputs), s.max_slots);
  return s;
}

Result<DType> choose_kv_dtype(const ExecutorOptions& options, const Weights& weights) {
  if (options.kv_dtype.empty()) {
    const auto& formats = weights.bytes_by_dtype();
    const bool is_f32 = formats.size() == 1 && formats[0].first == DType::kF32;
    return is_f32 || options.activations == "f32" ? DType::kF32 : DType::kF16;
  }
  const auto dtype = parse_dtype(options.kv_dtype);
  if (dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kQ8_0) return *dtype;
  return fail(StatusCode::kInvalidArgument, "[executor] kv_dtype \"{}\" is not one of f16, f32, q8_0",
              options.kv_dtype);
}

std::uint32_t default_pages(const Sizes& sizes, std::uint64_t page_bytes, std::uint64_t memory) {
  const std::uint64_t one_context = sizes.max_context / mem::kPageTokens;
  const auto pages = std::min(one_context * sizes.max_slots, memory / 4 / std::max<std::uint64_t>(page_bytes, 1));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pages, one_context, kMaxPages));
}

}  // namespace zinc_rt
