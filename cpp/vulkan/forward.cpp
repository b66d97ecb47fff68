#include "vulkan/forward.h"

#include <algorithm>

#include "base/error.h"
#include "vulkan/walk.h"

namespace zinc_rt::vulkan {
namespace {

// Checks that the model's shapes fit into the shared memory that kernels reserve.
Status check_sizes(const ModelShape& shape) {
  std::uint32_t head_dim = 0;
  for (const LayerShape& layer : shape.layers) head_dim = std::max({head_dim, layer.head_dim, layer.v_head_dim});
  const struct {
    const char* what;
    std::uint32_t n, most;
  } sizes[] = {{"values of a head", head_dim, push::kMostHeadDim},
               {"experts", shape.experts.n, push::kMostExperts},
               {"values of a recurrent layer's key", shape.delta.k_dim, push::kMostKeyDim},
               {"taps of a convolution", shape.delta.conv_width, push::kMostTaps}};
  for (const auto& size : sizes)
    if (size.n > size.most)
      return fail(StatusCode::kUnavailable, "[vulkan] {} {}, {} are supported", size.n, size.what, size.most);
  return {};
}

}  // namespace

std::uint64_t Forward::count_offset(std::vector<Counts>& counts, const Counts& entry) {
  auto found = std::ranges::find(counts, entry);
  if (found == counts.end()) found = counts.insert(counts.end(), entry);
  return static_cast<std::uint64_t>(found - counts.begin()) * 3 * sizeof(std::uint32_t);
}

Result<Forward> Forward::record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized) {
  ZRT_CHECK_OK(check_sizes(model.shape));
  Forward forward;
  forward.memory_ = &memory;
  forward.is_quantized_ = is_quantized;
  forward.n_choices_ = model.shape.experts.n_used;
  Walk walk{device, model, memory, is_quantized, forward.counts_};
  const std::size_t n_layers = model.shape.layers.size();
  std::vector<KernelKey> kernels;
  walk.wanted = &kernels;
  const auto body = [&] {
    walk.embeddings();
    for (std::size_t i = 0; i < n_layers; ++i) walk.layer(i);
  };
  for (const Kind kind : {kOne, kFew, kMany}) {
    walk.kind = kind;
    body();
    walk.head();
    walk.settle_stream();
  }
  walk.largest_logits();
  walk.copy_logits();
  walk.wanted = nullptr;
  ZRT_CHECK_OK(device.make_pipelines(kernels));
  const auto record_part = [&](auto&& part) {
    return device.record([&](Recorder& recorder) {
      walk.recorder = &recorder;
      part();
      walk.recorder = nullptr;
    });
  };
  for (const Kind kind : {kOne, kFew, kMany}) {
    walk.kind = kind;
    ZRT_TRY(forward.bodies_[kind], record_part(body));
    ZRT_TRY(forward.heads_[kind], record_part([&] { walk.head(); }));
  }
  ZRT_TRY(forward.largest_logits_, record_part([&] { walk.largest_logits(); }));
  ZRT_TRY(forward.logits_copy_, record_part([&] { walk.copy_logits(); }));
  // Only record_stream() needs this number of workgroups.
  count_offset(forward.counts_, {parts(model.config.model_dim, push::kWidth), Rows::kTokens, Grid::kPlain});
  if (forward.counts_.size() > kMaxCounts)
    return fail(StatusCode::kUnavailable, "[vulkan] {} kinds of dispatches, {} are supported", forward.counts_.size(),
                kMaxCounts);
  return forward;
}

Result<VkCommandBuffer> Forward::record_stream(Device& device, const MemoryRequest& model, std::size_t n_tokens,
                                               std::size_t n_layers) {
  Walk walk{device, model, *memory_, is_quantized_, counts_};
  walk.kind = kind_of(n_tokens);
  return device.record([&](Recorder& recorder) {
    walk.recorder = &recorder;
    walk.embeddings();
    for (std::size_t i = 0; i < n_layers; ++i) walk.layer(i);
    walk.settle_stream();
  });
}

void Forward::set_rows(const StepRows& rows) {
  const std::uint32_t by_kind[] = {rows.n_tokens,
                                   parts(rows.n_tokens, push::kTile),
                                   parts(rows.n_tokens, push::kMatrixTokens),
                                   parts(rows.n_tokens, push::kRowTokens),
                                   rows.n_tokens * n_choices_,
                                   rows.n_runs,
                                   rows.n_outputs,
                                   parts(rows.n_outputs, push::kTile),
                                   parts(rows.n_outputs, push::kMatrixTokens),
                                   parts(rows.n_outputs, push::kRowTokens)};
  static_assert(std::size(by_kind) == static_cast<std::size_t>(Rows::kCount));
  auto* out = memory_->host<std::uint32_t>(memory_->step.counts);
  for (const Counts& entry : counts_) {
    const std::uint32_t n = by_kind[static_cast<std::size_t>(entry.rows)];
    *out++ = entry.grid == Grid::kByRows ? n : entry.n;
    *out++ = entry.grid == Grid::kByRows ? entry.n : n;
    *out++ = entry.grid == Grid::kByChunks ? rows.n_chunks : 1;
  }
  *memory_->host<std::uint32_t>(memory_->step.n_tokens) = rows.n_tokens;
  *memory_->host<std::uint32_t>(memory_->step.n_outputs) = rows.n_outputs;
}

}  // namespace zinc_rt::vulkan
