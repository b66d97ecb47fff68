// Builds the draft block of EAGLE-3, a file of its own that guesses for the model it was trained with. Its features are
// the inputs of some of that model's layers, side by side, which the matrix fc makes as wide as the block. Then it is one
// Llama layer whose attention reads the norms of the token's embedding and of the features side by side. RoPE rotates
// pairs (2i, 2i + 1). What the layer gives, before the final norm, is the feature of the block's next guess. Keys of the
// file add norms: of the features (EAGLE-3.1), of the residual stream's beginning, of the next guess's feature. The rows
// of the output matrix may be some tokens of the vocabulary alone; the tensor d2t then has their ids
// (engine/draft_vocabulary.h). Embeddings and output matrix are the model's if the file has none.
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"eagle3"};
constexpr std::string_view kDivisors = "rope_freqs.weight";
constexpr const char* kTokenIds = "d2t";
constexpr Loan kLoans[] = {{"token_embd.weight", "token_embd.weight"}, {"output.weight", "output.weight"}};

Result<ir::Graph> build_draft(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.n_layers != 1 || c.n_experts > 0) {
    b.refuse(
        fmt::format("{} layers with {} experts; a draft block has 1 layer and no experts", c.n_layers, c.n_experts));
    return b.finish();
  }
  const auto n_of_model = static_cast<std::uint32_t>(c.target_layers.size()) * c.target_dim;
  b.optional_f32("rope_freqs", std::string(kDivisors), {c.rope_dim / 2});
  const BufferId table = b.weight("embed_table", "token_embd.weight", {c.vocab_size, c.model_dim});
  const BufferId token = b.embed("embedding", b.token_ids(), table, 1.0f);
  // A row has features of the model or of the block, and zeros in place of the others.
  const BufferId features = b.request("features", DType::kF32, {ir::kTokens, n_of_model + c.model_dim});
  BufferId of_model = b.slice("model_features", features, b.width(features), 0, n_of_model);
  if (c.norm_before_fc)
    of_model = b.rms_norm("model_features_norm", of_model,
                          b.weight("model_features_norm_weight", "enc.output_norm.weight", {n_of_model}),
                          static_cast<float>(c.norm_eps), n_of_model);
  const BufferId own = b.slice("own_features", features, b.width(features), n_of_model, c.model_dim);
  const BufferId hidden =
      project(b, "hidden", of_model, Matrix{.weight = b.weight("fc", "fc.weight", {c.model_dim, n_of_model})});
  b.add_into(hidden, own);
  b.set_layer(0);
  const BufferId of_token = row_norm(b, "attn_norm", token, "attn_norm");
  const BufferId of_features =
      row_norm(b, "feature_norm", hidden, b.layer_has("hidden_norm.weight") ? "hidden_norm" : "attn_norm_2");
  const BufferId both = b.concat(b.at_layer("attn_input"), of_token, of_features, 1);
  const BufferId residual = c.norm_before_residual ? of_features : hidden;
  b.add_into(residual, self_attention(b, both, attention_shape(c, 0), config_rope(b, false)));
  b.add_into(residual,
             dense_ffn(b, row_norm(b, "ffn_norm", residual, "ffn_norm"), c.ffn_dim_per_layer[0], push::kSilu));
  if (!c.norm_output) b.give_features(residual);
  const BufferId norm = b.weight("output_norm_weight", "output_norm.weight", {c.model_dim});
  const Tensor* ids = weights.find(kTokenIds);
  const std::uint64_t n_rows = ids != nullptr ? ids->dims[0] : c.vocab_size;
  const BufferId head =
      c.tied_embeddings && ids == nullptr ? table : b.weight("output_weight", "output.weight", {n_rows, c.model_dim});
  b.head(residual, norm, head, 1.0f, 0);
  b.leave_out(kTokenIds);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights, kDivisors)}}};
}

}  // namespace

extern const Family kFamily_eagle3;
const Family kFamily_eagle3{"EAGLE-3 draft blocks", kArchitectures, nullptr, rope_tables, nullptr, build_draft, kLoans};

}  // namespace zinc_rt::arch
