#include "model/mlc/params.h"

#include <fmt/format.h>

#include <array>

namespace zinc_rt::mlc {
namespace {

struct Names {
  std::string_view embedding, layer, attn_norm, qkv, attn_output, ffn_norm, output_norm;
};
constexpr std::array<Names, 3> kNames{{
    {"model.embed_tokens", "model.layers", "input_layernorm", "self_attn.qkv_proj", "self_attn.o_proj",
     "post_attention_layernorm", "model.norm"},
    {"transformer.embd", "transformer.h", "ln", "mixer.qkv_proj", "mixer.out_proj", "post_attention_layernorm",
     "transformer.norm"},
    {"model.embd", "model.h", "ln", "mixer.qkv_proj", "mixer.out_proj", "post_attention_layernorm", "model.norm"},
}};
constexpr Naming kLlamaNamings[] = {Naming::kLlama};
constexpr Naming kPhi3Namings[] = {Naming::kPhi3, Naming::kPhi3V, Naming::kLlama};

const Names& names_of(Naming naming) {
  return kNames[static_cast<std::size_t>(naming)];
}

}  // namespace

std::uint64_t Param::n_rows() const {
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.n_rows;
  return sum;
}

std::string_view embedding_name(Naming naming) {
  return names_of(naming).embedding;
}

std::span<const Naming> namings_of(std::string_view architecture) {
  return architecture == "phi3" ? std::span<const Naming>(kPhi3Namings) : std::span<const Naming>(kLlamaNamings);
}

std::vector<Param> params_of(const ChatConfig& c, Naming naming) {
  const Names& names = names_of(naming);
  const std::uint64_t q_rows = c.n_heads * c.head_dim, kv_rows = c.n_kv_heads * c.head_dim;
  const bool is_fused = c.architecture == "phi3";  // GGUF's phi3 fuses the same matrices as MLC does
  const auto norm = [&](std::string name, std::string tensor) {
    return Param{std::move(name), c.model_dim, {{std::move(tensor), 1, 0}}, true, false};
  };
  const auto end = [&](std::string_view name, const char* tensor) {
    return Param{std::string(name), c.model_dim, {{tensor, c.vocab_size, 0}}, false, true};
  };

  std::vector<Param> out;
  out.push_back(end(names.embedding, "token_embd.weight"));
  for (std::uint64_t layer = 0; layer < c.n_layers; ++layer) {
    const auto mlc = [&](std::string_view name) { return fmt::format("{}.{}.{}", names.layer, layer, name); };
    const auto gguf = [&](std::string_view name) { return fmt::format("blk.{}.{}.weight", layer, name); };
    const auto matrix = [&](std::string_view name, std::uint64_t n_columns, std::vector<Piece> pieces) {
      out.push_back({mlc(name), n_columns, std::move(pieces), false, false});
    };
    out.push_back(norm(mlc(names.attn_norm), gguf("attn_norm")));
    if (is_fused) {
      matrix(names.qkv, c.model_dim, {{gguf("attn_qkv"), q_rows + 2 * kv_rows, 0}});
    } else {
      matrix(
          names.qkv, c.model_dim,
          {{gguf("attn_q"), q_rows, c.head_dim}, {gguf("attn_k"), kv_rows, c.head_dim}, {gguf("attn_v"), kv_rows, 0}});
    }
    matrix(names.attn_output, q_rows, {{gguf("attn_output"), c.model_dim, 0}});
    out.push_back(norm(mlc(names.ffn_norm), gguf("ffn_norm")));
    if (is_fused) {
      matrix("mlp.gate_up_proj", c.model_dim, {{gguf("ffn_up"), 2 * c.ffn_dim, 0}});
    } else {
      matrix("mlp.gate_up_proj", c.model_dim, {{gguf("ffn_gate"), c.ffn_dim, 0}, {gguf("ffn_up"), c.ffn_dim, 0}});
    }
    matrix("mlp.down_proj", c.ffn_dim, {{gguf("ffn_down"), c.model_dim, 0}});
  }
  out.push_back(norm(std::string(names.output_norm), "output_norm.weight"));
  if (!c.tied_embeddings) out.push_back(end("lm_head", "output.weight"));
  return out;
}

}  // namespace zinc_rt::mlc
