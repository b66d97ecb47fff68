#include "vulkan/walk.h"

#include <algorithm>

namespace zinc_rt::vulkan {

void Forward::Walk::embed(const Tensor* table, float factor, Location y) {
  const auto width = static_cast<std::uint32_t>(table->dims[0]);
  dispatch("embed", {as_constant(table->dtype)}, parts(width, push::kWidth), Rows::kTokens,
           push::Embed{at(memory.step.token_ids), at(table), at(y), width,
                       static_cast<std::uint32_t>(row_bytes(table->dtype, width)), factor});
}

void Forward::Walk::residual_norm(Location x, std::optional<Location> y, const Tensor* weight, const Source& z,
                                  Rows rows) {
  const auto d = static_cast<std::uint32_t>(weight->dims[0]);
  const bool is_quantized_too = z.form != DType::kF32;
  dispatch(
      "residual_rms_norm", {as_constant(is_quantized_too ? z.form : kQuantizedForms[0])}, 1, rows,
      push::ResidualRmsNorm{at(x), y ? at(*y) : 0, rows == Rows::kOutputs ? at(memory.step.output_rows) : 0, at(weight),
                            z.has_floats ? at(z.x) : 0, is_quantized_too ? at(rows_in(z.form, z.x)) : 0, d,
                            static_cast<std::uint32_t>(activation_row_bytes(z.form, d)),
                            static_cast<float>(model.config.norm_eps), 1.0f / static_cast<float>(d)});
}

void Forward::Walk::norm(Location x, const Tensor* weight, Location y, std::uint32_t width, std::uint32_t group) {
  if (width == group && weight != nullptr) return residual_norm(x, {}, weight, {y}, Rows::kTokens);
  dispatch("rms_norm", {}, width / group, Rows::kTokens,
           push::RmsNorm{at(x), at(weight), at(y), width, group, static_cast<float>(model.config.norm_eps),
                         1.0f / static_cast<float>(group)});
}

Location Forward::Walk::rows_in(DType form, Location x) const {
  const auto found = std::ranges::find(kQuantizedForms, form);
  return found == kQuantizedForms.end()
             ? x
             : memory.activations.quantized[static_cast<std::size_t>(found - kQuantizedForms.begin())];
}

Forward::Walk::Source Forward::Walk::forms_for(Location x, std::span<const Product* const> readers) const {
  Source source{x, DType::kF32, false};
  for (const Product* reader : readers) {
    if (reader->weight == nullptr) continue;
    const DType form = form_of(*reader);
    if (source.form == DType::kF32) source.form = form;
    source.has_floats |= form != source.form || form == DType::kF32;
  }
  return source;
}

void Forward::Walk::quantize_for(const Source& x, std::uint32_t width, std::initializer_list<Target> targets,
                                 Rows rows) {
  for (const DType form : kQuantizedForms)
    if (form != x.form &&
        std::ranges::any_of(targets, [&](const Target& target) { return form_of(target.product) == form; }))
      dispatch("quantize", {as_constant(form)}, parts(width, 4 * push::kWidth), rows,
               push::Quantize{at(x.x), at(rows_in(form, x.x)), width,
                              static_cast<std::uint32_t>(activation_row_bytes(form, width))});
  barrier();
}

void Forward::Walk::products(const Source& x, std::initializer_list<Target> targets, Rows rows) {
  const std::uint32_t k = targets.begin()->product.width();
  quantize_for(x, k, targets, rows);
  for (const Target& target : targets) {
    const DType form = form_of(target.product), format = target.product.weight->dtype;
    const auto w_row = row_bytes(format, k);
    const std::uint32_t n = target.product.n_rows;
    const push::Linear arguments{at(rows_in(form, x.x)),
                                 at(target.product.weight) + target.product.first_row * w_row,
                                 at(target.product.bias),
                                 at(target.y),
                                 at(rows == Rows::kOutputs ? memory.step.n_outputs : memory.step.n_tokens),
                                 k,
                                 n,
                                 static_cast<std::uint32_t>(activation_row_bytes(form, k)),
                                 static_cast<std::uint32_t>(w_row)};
    const bool is_of_outputs = rows == Rows::kOutputs;
    // Way is a kernel that can compute a product, and how it is launched. `floats` is for floats and blocks of 32. For
    // groups of 256, the number of rows decides between `one`, `few` and `many`, and `matrices` is used instead of
    // `many` if the device has cooperative matrices.
    struct Way {
      std::string_view kernel;
      std::vector<std::uint32_t> constants;  // specialization constants, without the types
      std::uint32_t n_groups;
      Rows rows;
      Grid grid = Grid::kByRows;
    };
    const Way floats{"linear", {}, linear_groups(n), rows},
        one{"linear_row", {row_width(k), 1}, parts(n, push::kRowRows), rows},
        few{"linear_row",
            {push::kRowWidth, push::kRowTokens},
            parts(n, push::kRowRows),
            is_of_outputs ? Rows::kOutputFews : Rows::kTokenFews},
        many{"linear_tiled",
             {},
             parts(n, push::kWidth),
             is_of_outputs ? Rows::kOutputTiles : Rows::kTokenTiles,
             Grid::kPlain},
        matrices{"linear_matrix",
                 {},
                 parts(n, push::kMatrixRows),
                 is_of_outputs ? Rows::kOutputMatrices : Rows::kTokenMatrices};
    const Way* const ways[3][kKinds] = {{&floats, &floats, &many}, {&one, &few, &many}, {&one, &few, &matrices}};
    const Way& way = *ways[has_groups(form) ? device.uses_matrices() ? 2 : 1 : 0][kind];
    std::vector<std::uint32_t> constants{as_constant(format), as_constant(form)};
    constants.insert(constants.end(), way.constants.begin(), way.constants.end());
    dispatch(way.kernel, std::move(constants), way.n_groups, way.rows, arguments, way.grid);
  }
}

void Forward::Walk::expert_products(const Source& x, bool is_by_choice, std::initializer_list<Target> targets) {
  const std::uint32_t k = targets.begin()->product.width();
  quantize_for(x, k, targets, is_by_choice ? Rows::kChoices : Rows::kTokens);
  for (const Target& target : targets) {
    const DType form = form_of(target.product), format = target.product.weight->dtype;
    const auto w_row = row_bytes(format, k);
    const std::uint32_t n = target.product.n_rows;
    std::vector<std::uint32_t> constants{as_constant(format), as_constant(form)};
    if (has_groups(form)) constants.insert(constants.end(), {row_width(k), 1});
    dispatch(has_groups(form) ? "moe_linear_row" : "moe_linear", std::move(constants),
             has_groups(form) ? parts(n, push::kRowRows) : linear_groups(n), Rows::kChoices,
             push::MoeLinear{at(rows_in(form, x.x)), at(target.product.weight) + target.product.first_row * w_row,
                             at(memory.activations.expert_ids), at(target.y), target.product.weight->dims[1] * w_row, k,
                             n, static_cast<std::uint32_t>(activation_row_bytes(form, k)),
                             static_cast<std::uint32_t>(w_row), is_by_choice ? 1 : model.shape.experts.n_used},
             Grid::kByRows);
  }
}

void Forward::Walk::scale(Location x, std::uint32_t width, float factor, Rows rows, const Tensor* weight) {
  dispatch("scale", {}, parts(width, push::kWidth), rows, push::Scale{at(x), at(weight), width, factor});
}

void Forward::Walk::add(Location x, Location y, std::uint32_t width) {
  dispatch("add", {}, parts(width, push::kWidth), Rows::kTokens, push::Add{at(x), at(y), width});
}

Forward::Walk::Source Forward::Walk::glu_for(const Product& reader, Location gate, Location up, std::uint32_t width,
                                             std::uint32_t activation, Rows rows) {
  const Product* const readers[] = {&reader};
  const Source source = forms_for(gate, readers);
  if (source.form == DType::kF32) {
    dispatch("glu", {}, parts(width, push::kWidth), rows, push::Glu{at(gate), at(up), at(gate), width, activation});
    return {gate};
  }
  const std::uint32_t each = kind == kMany ? 4 : 1;  // values per invocation
  dispatch("glu_quantize", {as_constant(source.form), each}, parts(width, 4 * push::kWidth * each), rows,
           push::GluQuantize{at(gate), at(up), at(rows_in(source.form, gate)), width, activation,
                             static_cast<std::uint32_t>(activation_row_bytes(source.form, width))});
  return source;
}

void Forward::Walk::slice(Location x, Location y, std::uint32_t n_groups, std::uint32_t group, std::uint32_t first,
                          std::uint32_t width) {
  dispatch("slice", {}, parts(std::uint64_t{n_groups} * width, push::kWidth), Rows::kTokens,
           push::Slice{at(x), at(y), n_groups, group, first, width});
}

void Forward::Walk::sigmoid_mul(Location x, Location gate, std::uint32_t width, std::uint32_t gate_width) {
  dispatch("sigmoid_mul", {}, parts(width, push::kWidth), Rows::kTokens,
           push::SigmoidMul{at(x), at(gate), width, gate_width});
}

void Forward::Walk::add_to_stream(Location y, const Tensor* post_norm) {
  const std::uint32_t d = model.config.model_dim;
  settle_stream();
  if (post_norm != nullptr) {
    norm(y, post_norm, y, d, d);
    barrier();
  }
  if (model.shape.residual_scale != 1) {
    scale(y, d, model.shape.residual_scale);
    barrier();
  }
  waiting = y;
}

void Forward::Walk::settle_stream() {
  if (!waiting) return;
  add(memory.activations.hidden, *waiting, model.config.model_dim);
  waiting.reset();
  barrier();
}

Forward::Walk::Source Forward::Walk::norm_stream(const Tensor* weight, Readers readers, bool wants_floats, Rows rows) {
  Source source = forms_for(memory.activations.x, readers);
  source.has_floats |= wants_floats;
  residual_norm(memory.activations.hidden, waiting, weight, source, rows);
  if (rows != Rows::kOutputs) waiting.reset();
  return source;
}

void Forward::Walk::embeddings() {
  waiting.reset();
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
  const Tensor* factor = model.tensors.layers[i].scale;
  (this->*kMixers[static_cast<std::size_t>(shape_of(i).mixer)])(i);
  (this->*kFeedForwards[static_cast<std::size_t>(shape_of(i).feed_forward)])(i);
  if (model.shape.layer_embedding_dim > 0) add_layer_embedding(i);
  if (factor == nullptr) return;
  settle_stream();
  scale(memory.activations.hidden, model.config.model_dim, 1, Rows::kTokens, factor);
  barrier();
}

void Forward::Walk::head() {
  const std::uint32_t v = model.config.vocab_size;
  const Source x = norm_stream(model.tensors.output_norm, {&model.tensors.head}, false, Rows::kOutputs);
  barrier();
  products(x, {{model.tensors.head, memory.logits}}, Rows::kOutputs);
  barrier();
  if (model.shape.logit_scale != 1) {
    scale(memory.logits, v, model.shape.logit_scale, Rows::kOutputs);
    barrier();
  }
  if (const auto cap = static_cast<float>(model.config.final_logit_softcap); cap > 0)
    dispatch("softcap", {}, parts(v, push::kWidth), Rows::kOutputs, push::Softcap{at(memory.logits), v, cap});
}

void Forward::Walk::largest_logits() {
  dispatch("argmax", {}, 1, Rows::kOutputs,
           push::Argmax{at(memory.logits), at(memory.best_tokens), model.config.vocab_size});
}

void Forward::Walk::copy_logits() {
  const std::uint32_t v = model.config.vocab_size;
  dispatch("slice", {}, parts(v, push::kWidth), Rows::kOutputs,
           push::Slice{at(memory.logits), at(memory.host_logits), 1, v, 0, v});
}

}  // namespace zinc_rt::vulkan
