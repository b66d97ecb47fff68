#include "executor/sizes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/speculate.h"
#include "kernels/common/sample_params.h"
#include "mem/page_pool.h"

namespace zinc_rt {
namespace {

// Where memory ends at 4 GiB (WebAssembly), the KV cache may not take it all.
constexpr std::uint32_t kDefaultContext = sizeof(void*) > 4 ? 32768 : 4096;
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
  if (options.kv_part < 1) return fail(StatusCode::kInvalidArgument, "[executor] kv_part 0, 1 or more wanted");
  s.kv_part = options.kv_part;
  if (options.state_checkpoints > kMaxCheckpoints)
    return fail(StatusCode::kInvalidArgument, "[executor] state_checkpoints {} exceeds {}", options.state_checkpoints,
                kMaxCheckpoints);
  s.state_entries = options.max_slots + options.state_checkpoints;
  if (options.state_guesses > kMostGuesses)
    return fail(StatusCode::kInvalidArgument, "[executor] state_guesses {} exceeds {}", options.state_guesses,
                kMostGuesses);
  const std::uint32_t context =
      options.max_context > 0 ? options.max_context : std::min(config.context_length, kDefaultContext);
  if (context > config.context_length)
    return fail(StatusCode::kInvalidArgument, "[executor] max_context {} exceeds the model's context of {} tokens",
                context, config.context_length);
  s.max_context = mem::pages_for(context) * kPageTokens;
  if (std::uint64_t{s.max_slots} * s.max_context > UINT32_MAX)
    return fail(StatusCode::kInvalidArgument, "[executor] {} slots of {} tokens exceed {} tokens in all", s.max_slots,
                s.max_context, UINT32_MAX);
  s.history_tokens = s.max_slots * s.max_context;
  s.bias_entries = s.max_slots * kMaxBias;
  const std::uint32_t chunk = options.chunk_cap > 0 ? options.chunk_cap : kDefaultChunk;
  if (!config.is_causal && options.chunk_cap > 0 && chunk < s.max_context)
    return fail(StatusCode::kInvalidArgument,
                "[executor] chunk_cap {} is below the context of {} tokens, and {} computes a text in one step; a "
                "chunk_cap of {} fits, or a smaller max_context",
                chunk, s.max_context, config.architecture, s.max_context);
  // If texts must be computed whole, a step needs room for the longest text.
  s.max_tokens = std::max(config.is_causal ? std::min(chunk, s.max_context) : s.max_context, s.max_slots);
  s.max_outputs = std::max(std::min(s.max_tokens, kMaxOutputs), s.max_slots);
  s.mask_words = s.max_outputs * mask_words_of(config.vocab_size);
  return s;
}

KvType choose_kv_type(const ExecutorOptions& options, const Weights& weights, const ModelConfig& config,
                      std::string_view wanted) {
  if (options.kv_type == nullptr) {
    const auto& formats = weights.bytes_by_dtype();
    const bool is_f32 = formats.size() == 1 && formats[0].first == DType::kF32;
    if (is_f32 || options.activations == Activations::kF32) return *find_kv_type("f32");
    const KvType& type = *find_kv_type(wanted.empty() ? "i16" : wanted);
    const bool has_cells = std::ranges::all_of(
        std::array{config.head_dim, config.v_head_dim, config.sliding_head_dim, config.sliding_v_head_dim},
        find_kv_cell(type.k)->serves);
    return has_cells ? type : *find_kv_type("f16");
  }
  return *options.kv_type;
}

Result<Pooling> choose_pooling(const ExecutorOptions& options, const ModelConfig& config) {
  const Pooling pooling = options.pooling.value_or(static_cast<Pooling>(config.pooling_type));
  if (pooling == Pooling::kRank && config.is_causal && !options.pooling)
    return fail(
        StatusCode::kUnavailable,
        "[executor] key \"{}.pooling_type\": {} ({}) is not served for a causal model; with the option pooling ({}) "
        "the model does something else",
        config.architecture, config.pooling_type, to_string(pooling), fmt::join(pooling_names(), ", "));
  return pooling;
}

std::uint32_t embedding_dim(Pooling pooling, const ModelConfig& config) {
  if (pooling == Pooling::kNone) return 0;
  return pooling == Pooling::kRank ? 1 : config.model_dim;
}

Status check_kv_type(const KvType& kv, std::string_view tier, const std::function<bool(DType)>& is_there) {
  if (is_there(kv.k)) return {};
  std::string names;
  for (const KvType& type : kv_types())
    if (is_there(type.k)) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return fail(StatusCode::kInvalidArgument, "[executor] tier {} has no kernels for kv_dtype {}; it has them for {}",
              tier, kv.name, names);
}

std::uint32_t default_pages(const Sizes& sizes, std::uint64_t page_bytes, std::uint64_t memory) {
  const std::uint64_t one_context = sizes.max_context / kPageTokens;
  const auto pages =
      std::min(one_context * sizes.max_slots, memory / sizes.kv_part / std::max<std::uint64_t>(page_bytes, 1));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pages, one_context, kMaxPages));
}

}  // namespace zinc_rt
