#include "vulkan/forward.h"

#include <algorithm>

#include "base/error.h"
#include "base/kv_type.h"
#include "kernels/vulkan/push.h"
#include "mem/page_pool.h"

namespace zinc_rt::vulkan {
namespace {

std::uint32_t parts(std::uint64_t n, std::uint32_t size) {
  return static_cast<std::uint32_t>((n + size - 1) / size);
}
std::uint32_t as_constant(DType dtype) {
  return static_cast<std::uint32_t>(dtype);
}

// Eights of invocations that share an output of linear.comp: as many as a row has groups of 256, at most all.
constexpr std::uint32_t kEights = push::kWidth / 8;
std::uint32_t team_of(std::uint32_t width) {
  std::uint32_t team = 1;
  while (team < kEights && team * 256 < width) team *= 2;
  return team;
}

}  // namespace

// Records commands, and before that collects the kernels that they use: the walk is the same.
struct Forward::Walk {
  Device& device;
  const MemoryRequest& model;
  const ModelMemory& memory;
  bool is_quantized;
  std::vector<Counts>& counts;
  bool has_many_tokens = false;
  std::vector<KernelKey>* wanted = nullptr;  // collecting
  Recorder* recorder = nullptr;              // recording

  template <class Push>
  void dispatch(std::string_view kernel, std::vector<std::uint32_t> constants, std::uint32_t x, Rows rows,
                const Push& push) {
    const KernelKey key{kernel, std::move(constants)};
    if (wanted != nullptr) {
      wanted->push_back(key);
      return;
    }
    auto entry = std::ranges::find(counts, Counts{x, rows});
    if (entry == counts.end()) entry = counts.insert(counts.end(), Counts{x, rows});
    const auto offset = static_cast<std::uint64_t>(entry - counts.begin()) * 3 * sizeof(std::uint32_t);
    recorder->dispatch(device.pipeline(key), push, memory.buffers[memory.step.counts.region].handle,
                       memory.step.counts.offset + offset);
  }
  void barrier() {
    if (recorder != nullptr) recorder->barrier();
  }
  Address at(Place place) const { return memory.address(place); }
  Address at(const Tensor* tensor) const { return tensor == nullptr ? 0 : memory.address(memory.weights.at(tensor)); }

  void norm(Place x, const Tensor* weight, Place y, std::uint32_t width, std::uint32_t group, Rows rows) {
    dispatch("rms_norm", {}, width / group, rows,
             push::RmsNorm{at(x), at(weight), at(y), width, group, static_cast<float>(model.config.norm_eps),
                           1.0f / static_cast<float>(group)});
  }

  // All of them from the same rows x, each in the form that its weights want.
  void products(Place x, std::initializer_list<Target> targets, Rows rows) {
    const std::uint32_t k = targets.begin()->product.width();
    const ActivationPlaces& a = memory.activations;
    const auto form_of = [&](const Target& target) {
      return is_quantized ? act_dtype(target.product.weight->dtype) : DType::kF32;
    };
    const auto rows_in = [&](DType form) {
      const auto found = std::ranges::find(kQuantizedForms, form);
      return found == kQuantizedForms.end() ? x
                                            : a.quantized[static_cast<std::size_t>(found - kQuantizedForms.begin())];
    };
    for (const DType form : kQuantizedForms) {
      if (std::ranges::none_of(targets, [&](const Target& t) { return form_of(t) == form; })) continue;
      dispatch("quantize", {as_constant(form)}, parts(k, 4 * push::kWidth), rows,
               push::Quantize{at(x), at(rows_in(form)), k});
    }
    barrier();
    for (const Target& target : targets) {
      const DType form = form_of(target), format = target.product.weight->dtype;
      const auto w_row = row_bytes(format, k);
      const push::Linear arguments{at(rows_in(form)),
                                   at(target.product.weight) + target.product.first_row * w_row,
                                   at(target.product.bias),
                                   at(target.y),
                                   at(memory.step.n_tokens),
                                   k,
                                   target.product.n_rows,
                                   static_cast<std::uint32_t>(row_bytes(form, k)),
                                   static_cast<std::uint32_t>(w_row)};
      const std::uint32_t team = team_of(k);
      if (has_many_tokens && rows == Rows::kTokens)
        dispatch("linear_tiled", {as_constant(format), as_constant(form)}, parts(target.product.n_rows, push::kWidth),
                 Rows::kTokenTiles, arguments);
      else
        dispatch("linear", {as_constant(format), as_constant(form), team}, parts(target.product.n_rows, kEights / team),
                 rows, arguments);
    }
    barrier();
  }

  void scale(Place x, std::uint32_t width, float factor, Rows rows) {
    if (factor == 1.0f) return;
    dispatch("scale", {}, parts(width, push::kWidth), rows, push::Scale{at(x), width, factor});
    barrier();
  }

  // The residual stream takes what half a layer made.
  void add_to_stream(Place y, const Tensor* post_norm) {
    const std::uint32_t d = model.config.model_dim;
    if (post_norm != nullptr) {
      norm(y, post_norm, y, d, d, Rows::kTokens);
      barrier();
    }
    scale(y, d, model.shape.residual_scale, Rows::kTokens);
    dispatch("add", {}, parts(d, push::kWidth), Rows::kTokens, push::Add{at(memory.activations.hidden), at(y), d});
    barrier();
  }

  void embed() {
    const Tensor* table = model.tensors.embeddings;
    const std::uint32_t d = model.config.model_dim;
    dispatch("embed", {as_constant(table->dtype)}, parts(d, push::kWidth), Rows::kTokens,
             push::Embed{at(memory.step.token_ids), at(table), at(memory.activations.hidden), d,
                         static_cast<std::uint32_t>(row_bytes(table->dtype, d)), model.shape.embedding_scale});
    barrier();
  }

  void rotate(Place x, std::uint32_t width, int table) {
    const ModelConfig& c = model.config;
    const std::uint32_t n_heads = width / c.head_dim;
    dispatch("rope", {}, parts(std::uint64_t{n_heads} * (c.rope_dim / 2), push::kWidth), Rows::kTokens,
             push::Rope{at(x), at(memory.step.rope_positions), at(memory.rope_tables[static_cast<std::size_t>(table)]),
                        width, c.head_dim, c.rope_dim, model.shape.is_neox ? 1u : 0u});
  }

  void attention(std::size_t i) {
    const ModelConfig& c = model.config;
    const LayerShape& shape = model.shape.layers[i];
    const LayerTensors& t = model.tensors.layers[i];
    const ActivationPlaces& a = memory.activations;
    const CacheShape& cache = memory.cache_shapes[i];
    const StepPlaces& step = memory.step;
    const std::uint32_t q_dim = c.n_heads * c.head_dim, width = model.sizes.max_context / mem::kPageTokens;
    norm(a.hidden, t.attn_norm, a.x, c.model_dim, c.model_dim, Rows::kTokens);
    barrier();
    products(a.x, {{t.q, a.q}, {t.k, a.k}, {t.v, a.v}}, Rows::kTokens);
    if (t.q_norm != nullptr) norm(a.q, t.q_norm, a.q, q_dim, c.head_dim, Rows::kTokens);
    if (t.k_norm != nullptr) norm(a.k, t.k_norm, a.k, cache.k_dim, c.head_dim, Rows::kTokens);
    barrier();
    if (shape.rope_table >= 0) {
      rotate(a.q, q_dim, shape.rope_table);
      rotate(a.k, cache.k_dim, shape.rope_table);
      barrier();
    }
    const auto kv = as_constant(model.kv_dtype);
    const bool has_integers = find_kv_cell(model.kv_dtype)->layout == KvLayout::kIntegers;
    const std::uint32_t n_runs = parts(cache.k_dim, push::kKvRun) + parts(cache.v_dim, push::kKvRun);
    dispatch(has_integers ? "kv_write_integer" : "kv_write_batched", {kv},
             has_integers ? 2 * shape.n_kv_heads : parts(n_runs, push::kWidth), Rows::kTokens,
             push::KvWrite{at(a.k), at(a.v), at(step.positions), at(step.slots), at(step.pages), at(memory.caches[i]),
                           cache.k_dim, cache.v_dim, width, cache.page_bytes, cache.v_offset, c.head_dim});
    barrier();
    dispatch(
        has_integers ? "flash_attn_integer" : "flash_attn", {kv}, c.n_heads, Rows::kTokens,
        push::FlashAttn{at(a.q), at(memory.caches[i]), at(a.attn), at(step.positions), at(step.slots), at(step.pages),
                        c.n_heads, shape.n_kv_heads, c.head_dim, c.v_head_dim, width, cache.page_bytes, cache.v_offset,
                        shape.window, model.shape.attention_scale, static_cast<float>(c.attention_softcap)});
    barrier();
    products(a.attn, {{t.attn_output, a.y}}, Rows::kTokens);
    add_to_stream(a.y, t.attn_post_norm);
  }

  void feed_forward(std::size_t i) {
    const LayerTensors& t = model.tensors.layers[i];
    const ActivationPlaces& a = memory.activations;
    const std::uint32_t d = model.config.model_dim, f = model.shape.layers[i].ffn_dim;
    norm(a.hidden, t.ffn_norm, a.x, d, d, Rows::kTokens);
    barrier();
    products(a.x, {{t.gate, a.gate}, {t.up, a.up}}, Rows::kTokens);
    dispatch("glu", {}, parts(f, push::kWidth), Rows::kTokens,
             push::Glu{at(a.gate), at(a.up), at(a.gate), f, model.shape.activation});
    barrier();
    products(a.gate, {{t.down, a.y}}, Rows::kTokens);
    add_to_stream(a.y, t.ffn_post_norm);
  }

  void layer(std::size_t i) {
    attention(i);
    feed_forward(i);
  }

  void head() {
    const ActivationPlaces& a = memory.activations;
    const std::uint32_t d = model.config.model_dim, v = model.config.vocab_size;
    dispatch("gather_rows", {}, parts(d, push::kWidth), Rows::kOutputs,
             push::GatherRows{at(a.hidden), at(memory.step.output_rows), at(a.y), d});
    barrier();
    norm(a.y, model.tensors.output_norm, a.x, d, d, Rows::kOutputs);
    barrier();
    products(a.x, {{model.tensors.head, memory.logits}}, Rows::kOutputs);
    scale(memory.logits, v, model.shape.logit_scale, Rows::kOutputs);
    if (const auto cap = static_cast<float>(model.config.final_logit_softcap); cap > 0)
      dispatch("softcap", {}, parts(v, push::kWidth), Rows::kOutputs, push::Softcap{at(memory.logits), v, cap});
  }
};

Result<Forward> Forward::record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized) {
  if (model.config.v_head_dim > push::kMostHeadDim)
    return fail(StatusCode::kUnavailable, "[vulkan] heads of {} values, {} are supported", model.config.v_head_dim,
                push::kMostHeadDim);
  Forward forward;
  forward.memory_ = &memory;
  Walk walk{device, model, memory, is_quantized, forward.counts_};
  std::vector<KernelKey> kernels;
  walk.wanted = &kernels;
  walk.embed();
  for (const bool is_many : {false, true}) {
    walk.has_many_tokens = is_many;
    for (std::size_t i = 0; i < model.shape.layers.size(); ++i) walk.layer(i);
  }
  walk.head();
  walk.wanted = nullptr;
  ZRT_CHECK_OK(device.make_pipelines(kernels));
  const auto record_part = [&](auto&& part) {
    return device.record([&](Recorder& recorder) {
      walk.recorder = &recorder;
      part();
      walk.recorder = nullptr;
    });
  };
  ZRT_TRY(forward.embeddings_, record_part([&] { walk.embed(); }));
  for (const bool is_many : {false, true}) {
    walk.has_many_tokens = is_many;
    for (std::size_t i = 0; i < model.shape.layers.size(); ++i) {
      ZRT_TRY(const auto commands, record_part([&] { walk.layer(i); }));
      forward.layers_[is_many].push_back(commands);
    }
  }
  ZRT_TRY(forward.head_, record_part([&] { walk.head(); }));
  if (forward.counts_.size() > kMaxCounts)
    return fail(StatusCode::kUnavailable, "[vulkan] {} kinds of dispatches, {} are supported", forward.counts_.size(),
                kMaxCounts);
  return forward;
}

void Forward::set_rows(std::uint32_t n_tokens, std::uint32_t n_outputs) {
  auto* out = memory_->host<std::uint32_t>(memory_->step.counts);
  for (const Counts& entry : counts_) {
    *out++ = entry.x;
    *out++ = entry.rows == Rows::kTokens       ? n_tokens
             : entry.rows == Rows::kTokenTiles ? parts(n_tokens, push::kTile)
                                               : n_outputs;
    *out++ = 1;
  }
  *memory_->host<std::uint32_t>(memory_->step.n_tokens) = n_tokens;
}

}  // namespace zinc_rt::vulkan
