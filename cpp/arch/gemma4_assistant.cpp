// Builds the assistant of Gemma 4, a draft model of a few layers that has no KV cache. Its layers compute queries alone and
// read the cache that the model wrote: that of its last sliding or its last global layer. The input at a position is the
// embedding of the token there, from the model's table, beside the model's features of the position before it. So
// nothing needs to be computed for tokens of the text, and each guess is one row.
// The model has not computed the last token yet, so the row looks at the positions before that token. The step's position
// is therefore the one before the token's, a sliding layer's window is one shorter, and RoPE tables begin at position 1.
// All guesses of a text have the position of its last token: for guessed tokens the assistant's own features take the
// place of the model's, and the cache that it sees stays the same.
#include <algorithm>
#include <cmath>

#include "arch/gemma4.h"
#include "base/error.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"gemma4-assistant"};
constexpr Loan kLoans[] = {{"token_embd.weight", "model.token_embd.weight"}};
// Files of E2B and E4B may have groups of tokens, from which an output matrix of fewer rows can be chosen. All rows are
// multiplied here.
constexpr const char* kTokenGroups[] = {"masked_embd_centroids.weight", "masked_embd_ordering",
                                        "masked_embd_ordering.weight"};

// Declares the cache of the model's last layer of a kind that writes one.
Builder::KvCache cache_of_model(Builder& b, const ModelConfig& model, bool is_sliding) {
  const ModelConfig& c = b.config();
  std::uint32_t layer = model.n_layers - model.n_shared_kv_layers;
  while (layer > 0 && model.is_sliding[layer - 1] != is_sliding) --layer;
  if (layer == 0) {
    b.refuse(
        fmt::format("the model has 0 {} layers, whose KV cache an assistant reads", is_sliding ? "sliding" : "global"));
    return {};
  }
  b.set_layer(static_cast<int>(--layer));
  const std::uint32_t n_heads = model.n_kv_heads_per_layer[layer];
  const std::uint32_t k_dim = is_sliding ? model.sliding_head_dim : model.head_dim;
  const std::uint32_t v_dim = is_sliding ? model.sliding_v_head_dim : model.v_head_dim;
  for (std::uint32_t own = 0; own < c.n_layers; ++own)
    if (c.is_sliding[own] == is_sliding && c.n_kv_heads_per_layer[own] != n_heads)
      b.refuse(fmt::format("layer {} reads {} heads of K and V, and layer {} of its model has {}", own,
                           c.n_kv_heads_per_layer[own], layer, n_heads));
  const std::uint32_t own_k = is_sliding ? c.sliding_head_dim : c.head_dim;
  const std::uint32_t own_v = is_sliding ? c.sliding_v_head_dim : c.v_head_dim;
  if (own_k != k_dim || own_v != v_dim)
    b.refuse(fmt::format("its {} layers read heads of {} and {} values, those of layer {} of its model have {} and {}",
                         is_sliding ? "sliding" : "global", own_k, own_v, layer, k_dim, v_dim));
  return b.kv_cache(n_heads, k_dim, v_dim);
}

Result<ir::Graph> build_draft(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const auto refused = [&](std::string message) {
    b.refuse(std::move(message));
    return b.finish();
  };
  if (options.model == nullptr)
    return refused("it reads the KV cache of the model that it guesses for, and is opened with none");
  const ModelConfig& model = *options.model;
  if (model.architecture != "gemma4")
    return refused(fmt::format("it guesses for models of gemma4, and {} is one of {}", model.name, model.architecture));
  if (model.model_dim != c.target_dim)
    return refused(
        fmt::format("it was made for a model of width {}, and {} has {}", c.target_dim, model.name, model.model_dim));
  if (c.is_sliding.empty() || model.is_sliding.empty())
    return refused("key gemma4-assistant.attention.sliding_window_pattern is missing");
  const BufferId table = b.weight("embed_table", "model.token_embd.weight", {model.vocab_size, model.model_dim});
  const BufferId token = b.embed("embedding", b.token_ids(), table, std::sqrt(static_cast<float>(model.model_dim)));
  const BufferId features = b.request("features", DType::kF32, {ir::kTokens, model.model_dim});
  const BufferId hidden = project(
      b, "hidden", b.concat("token_and_features", token, features, 1),
      Matrix{.weight = b.weight("pre_projection", "nextn.pre_projection.weight", {c.model_dim, 2 * model.model_dim})});
  // A window of 0 has no end. One of 1 would leave nothing to look at.
  Gemma4Layers layers(b, hidden, c.sliding_window > 0 ? std::max(c.sliding_window, 2u) - 1 : 0);
  for (const bool is_sliding : {false, true})
    if (std::ranges::find(c.is_sliding, is_sliding) != c.is_sliding.end()) {
      const Builder::KvCache cache = cache_of_model(b, model, is_sliding);
      if (cache.k == ir::kNoBuffer) return b.finish();
      layers.use_cache(is_sliding, cache);
    }
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    layers.attention(layer);
    layers.feed_forward(layer);
    layers.scale();
  }
  const BufferId norm = b.weight("output_norm_weight", "output_norm.weight", {c.model_dim});
  b.give_features(project(
      b, "own_features", b.rms_norm("last_norm", hidden, norm, static_cast<float>(c.norm_eps), c.model_dim),
      Matrix{.weight = b.weight("post_projection", "nextn.post_projection.weight", {model.model_dim, c.model_dim})}));
  b.head(hidden, norm, b.weight("output_weight", "token_embd.weight", {c.vocab_size, c.model_dim}), 1.0f, 0);
  for (const char* tensor : kTokenGroups) b.leave_out(tensor);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return Gemma4Layers::rope_tables(c, weights, 1);
}

}  // namespace

extern const Family kFamily_gemma4_assistant;
const Family kFamily_gemma4_assistant{"Gemma 4 assistants", kArchitectures, nullptr, rope_tables, nullptr,
                                      build_draft,          kLoans};

}  // namespace zinc_rt::arch
