#include "tests_cpp/peer/executor/peer_executor.h"

#include <algorithm>

#include "base/error.h"
#include "base/platform/machine_memory.h"
#include "executor/rope_variants.h"
#include "executor/sizes.h"
#include "mem/page_pool.h"

namespace zinc_rt {
namespace {

constexpr std::uint64_t kPageBytes = 64;

}  // namespace

Result<std::unique_ptr<Executor>> PeerExecutor::open(const std::string& path, const ExecutorOptions& options) {
  auto peer = std::make_unique<PeerExecutor>();
  ZRT_TRY(auto weights, Weights::open(path));
  peer->weights_ = std::make_unique<Weights>(std::move(weights));
  ZRT_TRY(peer->config_, read_config(peer->weights_->metadata(), peer->weights_->infos()));
  ZRT_TRY(peer->family_, arch::find_family(peer->config_.architecture));
  ZRT_TRY(const auto sizes, choose_sizes(options, peer->config_));
  const KvType kv = choose_kv_type(options, *peer->weights_, peer->config_);
  const std::uint32_t n_pages =
      options.kv_pages > 0 ? options.kv_pages : default_pages(sizes, kPageBytes, machine_memory_bytes());
  peer->info_ = {
      .family = std::string(peer->family_->name),
      .tier = options.tier,
      .device = "none",
      .arithmetic = Arithmetic::kExact,
      .activations = options.activations,
      .fusion = options.fusion,
      .kv_dtype = std::string(kv.name),
      .max_slots = sizes.max_slots,
      .max_context = sizes.max_context,
      .n_pages = n_pages,
      .chunk_cap = sizes.max_tokens,
      .page_bytes = kPageBytes,
      .kv_bytes_per_token = kPageBytes / kPageTokens,
      .rope_limits = rope_limits(*peer->family_, peer->config_, *peer->weights_, sizes.max_context),
  };
  const auto n_variants = static_cast<std::uint32_t>(peer->info_.rope_limits.size() + 1);
  peer->check_ = StepCheck(
      {.sizes = sizes, .n_pages = n_pages, .vocab_size = peer->config_.vocab_size, .n_rope_variants = n_variants});
  peer->kv_.resize(kPageBytes * n_pages);
  peer->plan_.regions = {{"kv_pages", Heap::kHostVisible, peer->kv_.size(), false, "pages that nobody reads"}};
  peer->logits_.resize(peer->config_.vocab_size);
  return peer;
}

Status PeerExecutor::begin(const StepInput& input) {
  ZRT_CHECK_OK(check_.check(input));
  input_ = &input;
  return {};
}

Status PeerExecutor::finish(StepOutput& output) {
  const StepInput& input = *input_;
  output.tokens.clear();
  const auto n_vocab = static_cast<std::int32_t>(config_.vocab_size);
  for (std::size_t i = 0; i < input.outputs.size(); ++i) {
    const OutputRow& row = input.outputs[i];
    const std::int32_t next = (input.token_ids[row.token_index] + 1) % n_vocab;
    output.tokens.push_back(next);
    if (!input.on_logits || !row.wants_logits) continue;
    std::ranges::fill(logits_, 0.0f);
    logits_[static_cast<std::size_t>(next)] = 1;
    input.on_logits(static_cast<std::uint32_t>(i), logits_);
  }
  return {};
}

std::uint32_t PeerExecutor::rope_variant(std::uint64_t n_tokens) const {
  return zinc_rt::rope_variant(*family_, config_, *weights_, n_tokens);
}

Result<std::vector<float>> PeerExecutor::hidden(const StepInput&, int) {
  return fail(StatusCode::kUnavailable, "[peer] there is no residual stream");
}

}  // namespace zinc_rt
