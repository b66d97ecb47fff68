// The walk through a layer's attention, which reads K and V from pages.
#include <algorithm>

#include "base/kv_type.h"
#include "kernels/common/kv_page.h"
#include "vulkan/walk.h"

namespace zinc_rt::vulkan {
namespace {

// Tiles tells how a prompt's attention over an integer cache runs: the kernel, its constants, and the number of
// workgroups per token.
struct Tiles {
  std::string_view kernel;
  std::vector<std::uint32_t> constants;
  std::uint32_t n;
};

// Returns tiles that use cooperative matrices, with as many rows and as long pieces of K and V as a workgroup's memory
// can hold. Returns nullopt if none fit.
std::optional<Tiles> matrix_tiles(const LayerShape& shape, std::uint32_t group, std::uint32_t shared_bytes) {
  struct Size {
    std::uint32_t rows, step;
  };
  constexpr Size kSizes[] = {{32, 128}, {32, 64}, {16, 128}, {16, 64}};
  const std::uint32_t q_words = parts(shape.head_dim, 32) * 8, n_parts = parts(group, push::kAttendMatrixHeads),
                      n_heads = parts(group, n_parts);
  const auto* size = std::ranges::find_if(kSizes, [&](const Size& s) {
    return sizeof(std::uint32_t) * ZRT_ATTEND_MATRIX_WORDS(s.rows, s.step, q_words) <= shared_bytes;
  });
  if (size == std::end(kSizes)) return {};
  return Tiles{"flash_attn_integer_matrix",
               {n_heads, size->rows / n_heads, size->rows, size->step, q_words, parts(shape.v_head_dim, 128)},
               shape.n_kv_heads * n_parts};
}
Tiles tiles(const LayerShape& shape, std::uint32_t group) {
  // For wide heads, a workgroup handles half as many heads, because the values of a wide head take twice the registers.
  const std::uint32_t held = parts(shape.v_head_dim, push::kAttendWidth),
                      n_heads = std::min(group, held > 1 ? push::kAttendHeads / 2 : push::kAttendHeads);
  return {"flash_attn_integer_tile",
          {n_heads, std::max(held, parts(shape.head_dim, push::kAttendWidth))},
          shape.n_kv_heads * parts(group, n_heads)};
}

}  // namespace

void Forward::Walk::place_heads(std::size_t i) {
  const LayerShape& shape = shape_of(i);
  const AttentionTensors& t = model.tensors.layers[i].attention;
  const ActivationPlaces& a = memory.activations;
  const StepLocations& step = memory.step;
  const Cache& cache = *memory.caches[shape.cache_layer];
  const bool has_cache = shape.cache_layer == i, has_rope = shape.rope_table >= 0;
  const auto table = static_cast<std::size_t>(has_rope ? shape.rope_table : 0);
  dispatch("rms_norm_rope_kv_write", {as_constant(model.kv_dtype)},
           model.config.n_heads + (has_cache ? 2 * shape.n_kv_heads : 0), Rows::kTokens,
           push::RmsNormRopeKvWrite{
               at(a.q),
               at(a.k),
               at(t.v.weight == nullptr ? a.k : a.v),
               at(t.q_norm),
               at(t.k_norm),
               has_rope ? at(memory.rope_tables[table]) : 0,
               at(step.positions),
               at(step.rope_positions),
               at(step.slots),
               at(step.pages),
               at(cache.location),
               model.config.n_heads,
               shape.n_kv_heads,
               shape.head_dim,
               shape.v_head_dim,
               model.sizes.max_context / kPageTokens,
               cache.shape.page_bytes,
               cache.shape.v_offset,
               static_cast<std::uint32_t>(2 * model.shape.rope_tables[table][0].frequencies.size()),
               (model.shape.is_neox ? push::kNeox : 0) | (model.shape.has_value_norm ? push::kNormedValues : 0),
               static_cast<float>(model.config.norm_eps)});
}

void Forward::Walk::attend(std::size_t i) {
  const ModelConfig& c = model.config;
  const LayerShape& shape = shape_of(i);
  const ActivationPlaces& a = memory.activations;
  const StepLocations& step = memory.step;
  const Cache& cache = *memory.caches[shape.cache_layer];
  const bool has_integers = find_kv_cell(model.kv_dtype)->layout == KvLayout::kIntegers;
  const bool is_split =
      kind != kMany && memory.n_split_tokens >= (kind == kOne ? 1 : std::min(kManyTokens - 1, model.sizes.max_tokens));
  const push::FlashAttn push{at(a.q),
                             at(cache.location),
                             at(is_split ? a.attn_parts : a.attn),
                             at(step.positions),
                             at(step.slots),
                             at(step.pages),
                             c.n_heads,
                             shape.n_kv_heads,
                             shape.head_dim,
                             shape.v_head_dim,
                             model.sizes.max_context / kPageTokens,
                             cache.shape.page_bytes,
                             cache.shape.v_offset,
                             shape.window,
                             model.shape.attention_scale,
                             static_cast<float>(c.attention_softcap)};
  if (has_integers && kind == kMany) {
    const std::uint32_t group = c.n_heads / shape.n_kv_heads;
    auto chosen = device.uses_matrices() ? matrix_tiles(shape, group, device.info().shared_bytes) : std::nullopt;
    if (!chosen) chosen = tiles(shape, group);
    dispatch(chosen->kernel, std::move(chosen->constants), chosen->n, Rows::kTokens, push);
    return;
  }
  dispatch(has_integers ? "flash_attn_integer" : "flash_attn", {as_constant(model.kv_dtype), is_split ? 1u : 0u},
           c.n_heads, Rows::kTokens, push, is_split ? Grid::kByChunks : Grid::kPlain);
  if (!is_split) return;
  barrier();
  dispatch("flash_attn_merge", {}, c.n_heads, Rows::kTokens,
           push::FlashAttnMerge{at(a.attn_parts), at(a.attn), at(step.positions), c.n_heads, shape.v_head_dim,
                                shape.window});
}

void Forward::Walk::attention(std::size_t i) {
  const LayerShape& shape = shape_of(i);
  const LayerTensors& layer = model.tensors.layers[i];
  const AttentionTensors& t = layer.attention;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t n_heads = model.config.n_heads, head_dim = shape.head_dim;
  const Location q = model.shape.has_query_gate ? a.query_gate : a.q;
  const Source x = norm_stream(layer.attn_norm, {&t.q, &t.k, &t.v});
  barrier();
  if (shape.cache_layer != i)
    products(x, {{t.q, q}});
  else if (t.v.weight == nullptr)
    products(x, {{t.q, q}, {t.k, a.k}});
  else
    products(x, {{t.q, q}, {t.k, a.k}, {t.v, a.v}});
  barrier();
  if (model.shape.has_query_gate) {
    slice(q, a.q, n_heads, 2 * head_dim, 0, head_dim);
    slice(q, a.attn_gate, n_heads, 2 * head_dim, head_dim, head_dim);
    barrier();
  }
  place_heads(i);
  barrier();
  attend(i);
  barrier();
  if (model.shape.has_query_gate) {
    const std::uint32_t width = n_heads * shape.v_head_dim;
    sigmoid_mul(a.attn, a.attn_gate, width, width);
    barrier();
  }
  products({a.attn}, {{t.output, a.y}});
  barrier();
  add_to_stream(a.y, layer.attn_post_norm);
}

}  // namespace zinc_rt::vulkan
