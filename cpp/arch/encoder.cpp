#include "arch/encoder.h"

#include <fmt/format.h>

#include "kernels/common/kv_page.h"

namespace zinc_rt::arch {
namespace {

struct Norm {
  BufferId weight, bias;
};
void norm_into(Builder& b, BufferId x, const Norm& norm) {
  b.layer_norm_into(x, norm.weight, norm.bias, static_cast<float>(b.config().norm_eps));
}
// Adds hidden = norm(hidden + x), where the norm uses the layer's tensors `tensor`.weight and `tensor`.bias.
void add_and_norm(Builder& b, BufferId hidden, BufferId x, std::string_view name, std::string_view tensor) {
  const std::uint64_t dim = b.config().model_dim;
  b.add_into(hidden, x);
  norm_into(b, hidden,
            {b.layer_weight(fmt::format("{}_weight", name), fmt::format("{}.weight", tensor), {dim}),
             b.layer_weight(fmt::format("{}_bias", name), fmt::format("{}.bias", tensor), {dim})});
}

// Marks the classifier's tensors as not used, because a model that computes embeddings does not read them.
void leave_out_classifier(Builder& b) {
  for (const char* tensor : {"cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias"}) b.leave_out(tensor);
}

// Adds the nodes that turn the hidden state into scores of pairs of texts, out.embeddings [outputs, 1]. The first
// token's row goes through a dense layer and tanh, if the file has them, and then through the layer that computes the
// score. A layer adds its bias if the file has one.
void rank_head(Builder& b, BufferId hidden) {
  const std::uint64_t dim = b.config().model_dim;
  const auto matrix = [&](const char* name, const std::string& tensor, std::uint64_t n_out) -> Matrix {
    const BufferId weight = b.weight(fmt::format("{}_weight", name), tensor + ".weight", {n_out, dim});
    return {weight, b.optional_weight(fmt::format("{}_bias", name), tensor + ".bias", {n_out})};
  };
  const bool has_output = b.has_tensor("cls.output.weight"), has_dense = b.has_tensor("cls.weight");
  const Matrix dense = has_output && has_dense ? matrix("classifier_dense", "cls", dim) : Matrix{};
  const Matrix out = matrix("classifier_out", has_output || !has_dense ? "cls.output" : "cls", 1);
  BufferId x = b.gather_output_rows(hidden);
  if (dense.weight != ir::kNoBuffer)  // soft cap 1 * tanh(x / 1) is the plain tanh
    x = b.softcap("classifier_tanh", project(b, "classifier_dense", x, dense), 1.0f);
  project_into(b, b.output("embeddings", DType::kF32, {ir::kOutputs, b.rows(out.weight)}), x, out);
}

}  // namespace

void refuse_what_encoders_lack(Builder& b) {
  const auto& c = b.config();
  if (c.is_causal) b.refuse(fmt::format("key {}.attention.causal is true or absent, false wanted", c.architecture));
  if (b.options().pooling == Pooling::kNone)
    b.refuse("it generates nothing, and the file names no pooling; the option pooling (mean, cls or last) does");
  if (b.options().pooling == Pooling::kRank && !b.has_tensor("cls.output.weight") && !b.has_tensor("cls.weight"))
    b.refuse("pooling rank wants a tensor cls.output.weight or cls.weight, which scores; the file has none of them");
  if (b.options().max_context > c.context_length)
    b.refuse(fmt::format(
        "a context of {} tokens, whole pages of {}, is more than the {} positions of the file; a "
        "max_context of {} fits",
        b.options().max_context, kPageTokens, c.context_length, c.context_length / kPageTokens * kPageTokens));
}

BufferId encoder_embeddings(Builder& b, bool with_positions) {
  const auto& c = b.config();
  const BufferId hidden = embed_tokens(b, 1.0f);
  const auto add = [&](const char* name, BufferId ids, const std::string& tensor, std::uint64_t n_rows) {
    b.add_into(hidden,
               b.embed(name, ids, b.weight(fmt::format("{}_table", name), tensor, {n_rows, c.model_dim}), 1.0f));
  };
  if (c.n_token_types > 0)
    add("type_embed", b.request("token_types", DType::kI32, {ir::kTokens}), "token_types.weight", c.n_token_types);
  if (with_positions) add("position_embed", b.positions(), "position_embd.weight", c.context_length);
  norm_into(b, hidden,
            {b.weight("embed_norm_weight", "token_embd_norm.weight", {c.model_dim}),
             b.weight("embed_norm_bias", "token_embd_norm.bias", {c.model_dim})});
  return hidden;
}

void encoder_attention(Builder& b, BufferId hidden, std::uint32_t layer, const Rope& rope) {
  const auto shape = attention_shape(b.config(), layer);
  const BufferId mixed = attend(b, project_qkv(b, hidden, shape), shape, rope);
  add_and_norm(b, hidden, project(b, "attn_out", "attn.output", mixed, "attn_output", b.config().model_dim),
               "attn_out_norm", "attn_output_norm");
}

void add_and_norm(Builder& b, BufferId hidden, BufferId x) {
  add_and_norm(b, hidden, x, "layer_out_norm", "layer_output_norm");
}

Result<ir::Graph> encoder_head(Builder& b, BufferId hidden) {
  if (b.options().pooling == Pooling::kRank) {
    rank_head(b, hidden);
    return b.finish();
  }
  if (b.config().pooling_type == static_cast<std::uint32_t>(Pooling::kRank)) leave_out_classifier(b);
  b.embedding_head(hidden, ir::kNoBuffer);
  return b.finish();
}

}  // namespace zinc_rt::arch
