// BERT: encoders such as MiniLM, BGE and E5. Embeddings of tokens, positions and token types are summed and normed; a
// layer is x = norm(x + attention(x)), x = norm(x + down(gelu(up(x)))), with LAYER_NORM, and biases everywhere. A token
// sees all tokens of its text, so a text is computed whole, in one step. Tokens are of type 0, those of the second text
// of a pair of type 1. A cross-encoder (pooling rank) has a classifier over the first token: cls, a dense layer with
// tanh, and cls.output, which gives the score; or just one of them, which gives the score.
#include <fmt/format.h>

#include "arch/blocks.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"bert"};

struct Norm {
  BufferId weight, bias;
};
Norm layer_norm(Builder& b, std::string_view name, std::string_view tensor) {
  const std::uint64_t dim = b.config().model_dim;
  return {b.layer_weight(fmt::format("{}_weight", name), fmt::format("{}.weight", tensor), {dim}),
          b.layer_weight(fmt::format("{}_bias", name), fmt::format("{}.bias", tensor), {dim})};
}
void norm_into(Builder& b, BufferId x, const Norm& norm) {
  b.layer_norm_into(x, norm.weight, norm.bias, static_cast<float>(b.config().norm_eps));
}

BufferId embeddings(Builder& b) {
  const auto& c = b.config();
  const BufferId hidden = embed_tokens(b, 1.0f);
  const auto add = [&](const char* name, BufferId ids, const std::string& tensor, std::uint64_t n_rows) {
    b.add_into(hidden,
               b.embed(name, ids, b.weight(fmt::format("{}_table", name), tensor, {n_rows, c.model_dim}), 1.0f));
  };
  if (c.n_token_types > 0)
    add("type_embed", b.request("token_types", DType::kI32, {ir::kTokens}), "token_types.weight", c.n_token_types);
  add("position_embed", b.positions(), "position_embd.weight", c.context_length);
  norm_into(b, hidden,
            {b.weight("embed_norm_weight", "token_embd_norm.weight", {c.model_dim}),
             b.weight("embed_norm_bias", "token_embd_norm.bias", {c.model_dim})});
  return hidden;
}

void attention(Builder& b, BufferId hidden, std::uint32_t layer) {
  const auto shape = attention_shape(b.config(), layer);
  const BufferId mixed = attend(b, project_qkv(b, hidden, shape), shape, {ir::kNoBuffer, ir::kNoBuffer, 0, false});
  b.add_into(hidden, project(b, "attn_out", "attn.output", mixed, "attn_output", b.config().model_dim));
  norm_into(b, hidden, layer_norm(b, "attn_out_norm", "attn_output_norm"));
}

void feed_forward(Builder& b, BufferId hidden, std::uint32_t layer) {
  const BufferId up = project(b, "up", "ffn.up", hidden, "ffn_up", b.config().ffn_dim_per_layer[layer]);
  b.add_into(hidden,
             project(b, "ffn_out", "ffn.down", b.gelu(b.at_layer("gelu"), up), "ffn_down", b.config().model_dim));
  norm_into(b, hidden, layer_norm(b, "layer_out_norm", "layer_output_norm"));
}

// The tensors of the classifier. Beside an embedding they are left out.
void leave_out_classifier(Builder& b) {
  for (const char* tensor : {"cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias"}) b.leave_out(tensor);
}

Builder::Classifier classifier(Builder& b) {
  const std::uint64_t dim = b.config().model_dim;
  const auto layer = [&](const char* name, const std::string& tensor, std::uint64_t n_out) {
    return Norm{b.weight(fmt::format("{}_weight", name), tensor + ".weight", {n_out, dim}),
                b.optional_weight(fmt::format("{}_bias", name), tensor + ".bias", {n_out})};
  };
  Builder::Classifier c;
  const bool has_output = b.has_tensor("cls.output.weight"), has_dense = b.has_tensor("cls.weight");
  if (has_output && has_dense) {
    const Norm dense = layer("classifier_dense", "cls", dim);
    c = {dense.weight, dense.bias};
  }
  const Norm out = layer("classifier_out", has_output || !has_dense ? "cls.output" : "cls", 1);
  c.out_w = out.weight;
  c.out_b = out.bias;
  return c;
}

void refuse_what_is_not_there(Builder& b) {
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

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  refuse_what_is_not_there(b);
  const BufferId hidden = embeddings(b);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    attention(b, hidden, layer);
    feed_forward(b, hidden, layer);
  }
  if (options.pooling == Pooling::kRank) {
    b.rank_head(hidden, classifier(b));
    return b.finish();
  }
  if (c.pooling_type == static_cast<std::uint32_t>(Pooling::kRank)) leave_out_classifier(b);
  b.embedding_head(hidden, ir::kNoBuffer);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig&, const Weights&) {
  return {};
}

}  // namespace

extern const Family kFamily_bert;
const Family kFamily_bert{"BERT", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
