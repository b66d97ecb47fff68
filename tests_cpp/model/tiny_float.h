// A llama with random weights, written to a file: rows of its matrices are whole groups of 256, of BF16 in attention
// and of F16 in the feed-forward, so that executors make fixed16 of all but one of them.
// Thread rule: pure but for the file.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kernels/common/half.h"
#include "tests_cpp/model/gguf_builder.h"
#include "tests_cpp/model/model_folder.h"

namespace zinc_rt {

struct TinyFloat {
  std::uint32_t model_dim = 256, ffn_dim = 512, n_heads = 4, n_kv_heads = 2, n_layers = 2, context = 512,
                n_tokens = 320, head_dim = 0, v_head_dim = 0, window = 0;  // heads of 0: model_dim / n_heads
  float softcap = 0;                                                       // of attention
  bool is_tied = false;                                                    // the head is the embeddings
  std::string spread = "blk.1.ffn_up";  // a matrix of so many magnitudes that it stays one of floats
};

// Writes NAME.gguf; the path that comes back has no ending, as model_path() wants it.
inline std::string write_tiny_float(const std::string& name, const TinyFloat& m = {}) {
  gguf::GgufBuilder file;
  file.add_string("general.architecture", "llama").add_string("general.name", "tiny float");
  file.add_u32("llama.block_count", m.n_layers).add_u32("llama.context_length", m.context);
  file.add_u32("llama.embedding_length", m.model_dim).add_u32("llama.feed_forward_length", m.ffn_dim);
  file.add_u32("llama.attention.head_count", m.n_heads).add_u32("llama.attention.head_count_kv", m.n_kv_heads);
  file.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const std::uint64_t k_dim = m.head_dim > 0 ? m.head_dim : m.model_dim / m.n_heads,
                      v_dim = m.v_head_dim > 0 ? m.v_head_dim : k_dim;
  file.add_u32("llama.attention.key_length", static_cast<std::uint32_t>(k_dim));
  file.add_u32("llama.attention.value_length", static_cast<std::uint32_t>(v_dim));
  if (m.window > 0) file.add_u32("llama.attention.sliding_window", m.window);
  if (m.softcap > 0) file.add_f32("llama.attn_logit_softcapping", m.softcap);
  file.add_string("tokenizer.ggml.model", "gpt2");
  std::vector<std::string> tokens;
  for (std::uint32_t i = 0; i < m.n_tokens; ++i) tokens.push_back("t" + std::to_string(i));
  file.add_array("tokenizer.ggml.tokens", gguf::ValueType::kString, tokens);

  std::mt19937 rng(11);
  std::vector<std::byte> data;
  const auto put = [&](const void* value, std::size_t n) {
    const auto* bytes = static_cast<const std::byte*>(value);
    data.insert(data.end(), bytes, bytes + n);
  };
  const auto add = [&](const std::string& tensor, DType dtype, const std::vector<std::uint64_t>& dims) {
    const std::uint64_t n = dims[0] * (dims.size() > 1 ? dims[1] : 1);
    std::normal_distribution<float> normal(0.0f,
                                           dims.size() > 1 ? 1.0f / std::sqrt(static_cast<float>(dims[0])) : 1.0f);
    for (std::uint64_t i = 0; i < n; ++i) {
      float value = normal(rng);
      if (tensor.starts_with(m.spread)) value = std::ldexp(value, -static_cast<int>(rng() % 14));
      const std::uint16_t bf16 = f32_to_bf16(value);  // most F16 weights of the world were BF16 before
      const std::uint16_t f16 = f32_to_f16(bf16_to_f32(bf16));
      switch (dtype) {
        case DType::kBF16: put(&bf16, sizeof(bf16)); break;
        case DType::kF16: put(&f16, sizeof(f16)); break;
        default: put(&value, sizeof(value));
      }
    }
    const std::uint32_t type = dtype == DType::kBF16 ? 30 : dtype == DType::kF16 ? 1 : 0;  // GGUF's number
    file.add_tensor(tensor, type, dims, row_bytes(dtype, n));
    data.resize((data.size() + 31) / 32 * 32);
  };
  const std::uint64_t d = m.model_dim, f = m.ffn_dim;
  add("token_embd.weight", DType::kBF16, {d, m.n_tokens});
  if (!m.is_tied) add("output.weight", DType::kF16, {d, m.n_tokens});
  add("output_norm.weight", DType::kF32, {d});
  for (std::uint32_t layer = 0; layer < m.n_layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    add(at + "attn_norm.weight", DType::kF32, {d});
    add(at + "attn_q.weight", DType::kBF16, {d, k_dim * m.n_heads});
    add(at + "attn_k.weight", DType::kBF16, {d, k_dim * m.n_kv_heads});
    add(at + "attn_v.weight", DType::kBF16, {d, v_dim * m.n_kv_heads});
    add(at + "attn_output.weight", DType::kBF16, {v_dim * m.n_heads, d});
    add(at + "ffn_norm.weight", DType::kF32, {d});
    add(at + "ffn_gate.weight", DType::kF16, {d, f});
    add(at + "ffn_up.weight", DType::kF16, {d, f});
    add(at + "ffn_down.weight", DType::kF16, {f, d});
  }
  auto bytes = file.build();
  const std::size_t begin = (file.header_bytes + 31) / 32 * 32;
  std::memcpy(bytes.data() + begin, data.data(), bytes.size() - begin);
  const std::string path = model_folder() + "/" + name;
  gguf::write_file(path + ".gguf", bytes);
  return path;
}

}  // namespace zinc_rt
