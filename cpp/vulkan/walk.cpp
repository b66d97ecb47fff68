#include "vulkan/walk.h"

#include <algorithm>

namespace zinc_rt::vulkan {

void Forward::Walk::embed(const Tensor* table, float factor, Place y) {
  const auto width = static_cast<std::uint32_t>(table->dims[0]);
  dispatch("embed", {as_constant(table->dtype)}, parts(width, push::kWidth), Rows::kTokens,
           push::Embed{at(memory.step.token_ids), at(table), at(y), width,
                       static_cast<std::uint32_t>(row_bytes(table->dtype, width)), factor});
}

void Forward::Walk::norm(Place x, const Tensor* weight, Place y, std::uint32_t width, std::uint32_t group, Rows rows) {
  dispatch("rms_norm", {}, width / group, rows,
           push::RmsNorm{at(x), at(weight), at(y), width, group, static_cast<float>(model.config.norm_eps),
                         1.0f / static_cast<float>(group)});
}

Place Forward::Walk::rows_in(DType form, Place x) const {
  const auto found = std::ranges::find(kQuantizedForms, form);
  return found == kQuantizedForms.end()
             ? x
             : memory.activations.quantized[static_cast<std::size_t>(found - kQuantizedForms.begin())];
}

void Forward::Walk::quantize_for(Place x, std::uint32_t width, std::initializer_list<Target> targets, Rows rows) {
  for (const DType form : kQuantizedForms)
    if (std::ranges::any_of(targets, [&](const Target& target) { return form_of(target.product) == form; }))
      dispatch("quantize", {as_constant(form)}, parts(width, 4 * push::kWidth), rows,
               push::Quantize{at(x), at(rows_in(form, x)), width,
                              static_cast<std::uint32_t>(activation_row_bytes(form, width))});
  barrier();
}

void Forward::Walk::products(Place x, std::initializer_list<Target> targets, Rows rows) {
  const std::uint32_t k = targets.begin()->product.width();
  quantize_for(x, k, targets, rows);
  for (const Target& target : targets) {
    const DType form = form_of(target.product), format = target.product.weight->dtype;
    const auto w_row = row_bytes(format, k);
    const std::uint32_t n = target.product.n_rows;
    const push::Linear arguments{at(rows_in(form, x)),
                                 at(target.product.weight) + target.product.first_row * w_row,
                                 at(target.product.bias),
                                 at(target.y),
                                 at(rows == Rows::kOutputs ? memory.step.n_outputs : memory.step.n_tokens),
                                 k,
                                 n,
                                 static_cast<std::uint32_t>(activation_row_bytes(form, k)),
                                 static_cast<std::uint32_t>(w_row)};
    const Rows tiles = rows == Rows::kOutputs ? Rows::kOutputTiles : Rows::kTokenTiles;
    const bool has_groups = form == DType::kQ8A256 || form == DType::kQ16A256;
    if (kind == kMany)
      dispatch("linear_tiled", {as_constant(format), as_constant(form)}, parts(n, push::kWidth), tiles, arguments);
    else if (kind == kFew && has_groups)
      dispatch("linear", {as_constant(format), as_constant(form), push::kFewTokens}, linear_groups(n), tiles, arguments,
               true);
    else
      dispatch("linear", {as_constant(format), as_constant(form), 1}, linear_groups(n), rows, arguments, true);
  }
}

void Forward::Walk::expert_products(Place x, bool is_by_choice, std::initializer_list<Target> targets) {
  const std::uint32_t k = targets.begin()->product.width();
  quantize_for(x, k, targets, is_by_choice ? Rows::kChoices : Rows::kTokens);
  for (const Target& target : targets) {
    const DType form = form_of(target.product), format = target.product.weight->dtype;
    const auto w_row = row_bytes(format, k);
    dispatch("moe_linear", {as_constant(format), as_constant(form), 1}, linear_groups(target.product.n_rows),
             Rows::kChoices,
             push::MoeLinear{at(rows_in(form, x)), at(target.product.weight) + target.product.first_row * w_row,
                             at(memory.activations.expert_ids), at(target.y), target.product.weight->dims[1] * w_row, k,
                             target.product.n_rows, static_cast<std::uint32_t>(activation_row_bytes(form, k)),
                             static_cast<std::uint32_t>(w_row), is_by_choice ? 1 : model.shape.experts.n_used},
             true);
  }
}

void Forward::Walk::scale(Place x, std::uint32_t width, float factor, Rows rows, const Tensor* weight) {
  dispatch("scale", {}, parts(width, push::kWidth), rows, push::Scale{at(x), at(weight), width, factor});
}

void Forward::Walk::add(Place x, Place y, std::uint32_t width) {
  dispatch("add", {}, parts(width, push::kWidth), Rows::kTokens, push::Add{at(x), at(y), width});
}

void Forward::Walk::glu(Place gate, Place up, Place y, std::uint32_t width, std::uint32_t activation) {
  dispatch("glu", {}, parts(width, push::kWidth), Rows::kTokens, push::Glu{at(gate), at(up), at(y), width, activation});
}

void Forward::Walk::slice(Place x, Place y, std::uint32_t n_groups, std::uint32_t group, std::uint32_t first,
                          std::uint32_t width) {
  dispatch("slice", {}, parts(std::uint64_t{n_groups} * width, push::kWidth), Rows::kTokens,
           push::Slice{at(x), at(y), n_groups, group, first, width});
}

void Forward::Walk::sigmoid_mul(Place x, Place gate, std::uint32_t width, std::uint32_t gate_width) {
  dispatch("sigmoid_mul", {}, parts(width, push::kWidth), Rows::kTokens,
           push::SigmoidMul{at(x), at(gate), width, gate_width});
}

void Forward::Walk::add_to_stream(Place y, const Tensor* post_norm) {
  const std::uint32_t d = model.config.model_dim;
  if (post_norm != nullptr) {
    norm(y, post_norm, y, d, d);
    barrier();
  }
  if (model.shape.residual_scale != 1) {
    scale(y, d, model.shape.residual_scale);
    barrier();
  }
  add(memory.activations.hidden, y, d);
  barrier();
}

void Forward::Walk::embeddings() {
  embed(model.tensors.embeddings, model.shape.embedding_scale, memory.activations.hidden);
  barrier();
  if (model.shape.layer_embedding_dim > 0) layer_embeddings();
}

void Forward::Walk::layer(std::size_t i) {
  using Part = void (Walk::*)(std::size_t);
  constexpr Part kMixers[] = {&Walk::attention, &Walk::delta_net};
  constexpr Part kFeedForwards[] = {&Walk::dense, &Walk::experts, &Walk::dense_and_experts};
  static_assert(std::size(kMixers) == static_cast<std::size_t>(Mixer::kCount) &&
                std::size(kFeedForwards) == static_cast<std::size_t>(FeedForward::kCount));
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  norm(a.hidden, t.attn_norm, a.x, d, d);
  barrier();
  (this->*kMixers[static_cast<std::size_t>(shape_of(i).mixer)])(i);
  norm(a.hidden, t.ffn_norm, a.x, d, d);
  barrier();
  (this->*kFeedForwards[static_cast<std::size_t>(shape_of(i).feed_forward)])(i);
  if (model.shape.layer_embedding_dim > 0) add_layer_embedding(i);
  if (t.scale != nullptr) {
    scale(a.hidden, d, 1, Rows::kTokens, t.scale);
    barrier();
  }
}

void Forward::Walk::head() {
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim, v = model.config.vocab_size;
  dispatch("gather_rows", {}, parts(d, push::kWidth), Rows::kOutputs,
           push::GatherRows{at(a.hidden), at(memory.step.output_rows), at(a.y), d});
  barrier();
  norm(a.y, model.tensors.output_norm, a.x, d, d, Rows::kOutputs);
  barrier();
  products(a.x, {{model.tensors.head, memory.logits}}, Rows::kOutputs);
  barrier();
  if (model.shape.logit_scale != 1) {
    scale(memory.logits, v, model.shape.logit_scale, Rows::kOutputs);
    barrier();
  }
  if (const auto cap = static_cast<float>(model.config.final_logit_softcap); cap > 0)
    dispatch("softcap", {}, parts(v, push::kWidth), Rows::kOutputs, push::Softcap{at(memory.logits), v, cap});
}

}  // namespace zinc_rt::vulkan
