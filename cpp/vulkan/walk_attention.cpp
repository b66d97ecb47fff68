// Attention over paged K and V.
#include "base/kv_type.h"
#include "mem/page_pool.h"
#include "vulkan/walk.h"

namespace zinc_rt::vulkan {

void Forward::Walk::rotate(Place x, std::uint32_t n_heads, std::uint32_t head_dim, int table) {
  const auto number = static_cast<std::size_t>(table);
  const auto n_rot = static_cast<std::uint32_t>(2 * model.shape.rope_tables[number][0].frequencies.size());
  dispatch("rope", {}, parts(std::uint64_t{n_heads} * (n_rot / 2), push::kWidth), Rows::kTokens,
           push::Rope{at(x), at(memory.step.rope_positions), at(memory.rope_tables[number]), n_heads * head_dim,
                      head_dim, n_rot, model.shape.is_neox ? 1u : 0u});
}

void Forward::Walk::write_cache(std::size_t i) {
  const ActivationPlaces& a = memory.activations;
  const StepPlaces& step = memory.step;
  const Cache& cache = *memory.caches[i];
  const bool has_integers = find_kv_cell(model.kv_dtype)->layout == KvLayout::kIntegers;
  const std::uint32_t n_runs = parts(cache.shape.k_dim, push::kKvRun) + parts(cache.shape.v_dim, push::kKvRun);
  dispatch(has_integers ? "kv_write_integer" : "kv_write_batched", {as_constant(model.kv_dtype)},
           has_integers ? 2 * shape_of(i).n_kv_heads : parts(n_runs, push::kWidth), Rows::kTokens,
           push::KvWrite{at(a.k), at(a.v), at(step.positions), at(step.slots), at(step.pages), at(cache.place),
                         cache.shape.k_dim, cache.shape.v_dim, model.sizes.max_context / mem::kPageTokens,
                         cache.shape.page_bytes, cache.shape.v_offset, shape_of(i).head_dim});
}

void Forward::Walk::attend(std::size_t i) {
  const ModelConfig& c = model.config;
  const LayerShape& shape = shape_of(i);
  const ActivationPlaces& a = memory.activations;
  const StepPlaces& step = memory.step;
  const Cache& cache = *memory.caches[shape.cache_layer];
  const bool has_integers = find_kv_cell(model.kv_dtype)->layout == KvLayout::kIntegers;
  dispatch(has_integers ? "flash_attn_integer" : "flash_attn", {as_constant(model.kv_dtype)}, c.n_heads, Rows::kTokens,
           push::FlashAttn{at(a.q), at(cache.place), at(a.attn), at(step.positions), at(step.slots), at(step.pages),
                           c.n_heads, shape.n_kv_heads, shape.head_dim, shape.v_head_dim,
                           model.sizes.max_context / mem::kPageTokens, cache.shape.page_bytes, cache.shape.v_offset,
                           shape.window, model.shape.attention_scale, static_cast<float>(c.attention_softcap)});
}

void Forward::Walk::attention(std::size_t i) {
  const LayerShape& shape = shape_of(i);
  const LayerTensors& layer = model.tensors.layers[i];
  const AttentionTensors& t = layer.attention;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t n_heads = model.config.n_heads, n_kv = shape.n_kv_heads, head_dim = shape.head_dim;
  const bool has_cache = shape.cache_layer == i;
  const Place q = model.shape.has_query_gate ? a.query_gate : a.q;
  if (!has_cache)
    products(a.x, {{t.q, q}});
  else if (t.v.weight == nullptr)
    products(a.x, {{t.q, q}, {t.k, a.k}});
  else
    products(a.x, {{t.q, q}, {t.k, a.k}, {t.v, a.v}});
  barrier();
  if (model.shape.has_query_gate) {
    slice(q, a.q, n_heads, 2 * head_dim, 0, head_dim);
    slice(q, a.attn_gate, n_heads, 2 * head_dim, head_dim, head_dim);
  }
  // Values that are made of k's product are so before its norm.
  if (has_cache && model.shape.has_value_norm)
    norm(t.v.weight == nullptr ? a.k : a.v, nullptr, a.v, n_kv * shape.v_head_dim, shape.v_head_dim);
  barrier();
  if (t.q_norm != nullptr) norm(a.q, t.q_norm, a.q, n_heads * head_dim, head_dim);
  if (t.k_norm != nullptr) norm(a.k, t.k_norm, a.k, n_kv * head_dim, head_dim);
  barrier();
  if (shape.rope_table >= 0) {
    rotate(a.q, n_heads, head_dim, shape.rope_table);
    if (has_cache) rotate(a.k, n_kv, head_dim, shape.rope_table);
    barrier();
  }
  if (has_cache) {
    write_cache(i);
    barrier();
  }
  attend(i);
  barrier();
  if (model.shape.has_query_gate) {
    const std::uint32_t width = n_heads * shape.v_head_dim;
    sigmoid_mul(a.attn, a.attn_gate, width, width);
    barrier();
  }
  products(a.attn, {{t.output, a.y}});
  barrier();
  add_to_stream(a.y, layer.attn_post_norm);
}

}  // namespace zinc_rt::vulkan
