// A BERT encoder with random weights, written to a file, right or wrong.
// Thread rule: pure but for the file.
#pragma once

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "tests_cpp/model/gguf_builder.h"
#include "tests_cpp/model/model_folder.h"

namespace zinc_rt {

struct TinyBert {
  std::uint32_t model_dim = 64, ffn_dim = 96, n_heads = 4, n_layers = 2, context = 128, n_tokens = 320;
  std::uint32_t n_embedded = 320, n_positions = 128, n_types = 2;  // rows of tensors
  std::uint32_t pooling = 1;                                       // of the file; 1: mean, 2: cls, 3: last
  std::optional<bool> is_causal = false;                           // absent: no key
  std::optional<std::uint32_t> type_count = 2;                     // the same
  DType matrix = DType::kF32;                                      // of a layer's matrices: f32 or q8_0
  std::string left_out = {};                                       // a tensor
  std::uint32_t n_labels = 0;                                      // of a cross-encoder's head; 0: there is none
  bool has_dense = true;                                           // of such a head
};

// Writes NAME.gguf among the test's temporary files; the path that comes back has no ending, as model_path() wants it.
inline std::string write_tiny_bert(const std::string& name, const TinyBert& m = {}) {
  using gguf::ValueType;
  gguf::GgufBuilder file;
  file.add_string("general.architecture", "bert").add_string("general.name", "tiny bert");
  file.add_u32("bert.block_count", m.n_layers).add_u32("bert.context_length", m.context);
  file.add_u32("bert.embedding_length", m.model_dim).add_u32("bert.feed_forward_length", m.ffn_dim);
  file.add_u32("bert.attention.head_count", m.n_heads).add_f32("bert.attention.layer_norm_epsilon", 1e-12f);
  file.add_u32("bert.pooling_type", m.pooling).add_string("tokenizer.ggml.model", "bert");
  if (m.is_causal) file.add("bert.attention.causal", ValueType::kBool, std::uint8_t{*m.is_causal});
  if (m.type_count) file.add_u32("tokenizer.ggml.token_type_count", *m.type_count);
  std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  for (std::size_t i = tokens.size(); i < m.n_tokens; ++i) tokens.push_back("\u2581w" + std::to_string(i));
  std::vector<std::int32_t> types(tokens.size(), 1);
  std::fill_n(types.begin(), 4, 3);
  file.add_array("tokenizer.ggml.tokens", ValueType::kString, tokens);
  file.add_array("tokenizer.ggml.token_type", ValueType::kI32, types);

  std::mt19937 rng(5);
  std::vector<std::byte> data;
  const auto add = [&](const std::string& tensor, DType dtype, std::uint32_t rows, std::uint32_t k, float scale) {
    if (tensor == m.left_out) return;
    std::vector<std::byte> bytes;
    if (dtype == DType::kF32) {
      std::normal_distribution<float> normal(0.0f, scale);
      std::vector<float> values(std::size_t{rows} * k);
      for (float& v : values) v = normal(rng);
      bytes.resize(values.size() * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
    } else {
      bytes.resize(rows * row_bytes(dtype, k));
      for (auto& byte : bytes) byte = static_cast<std::byte>(rng());
      for (std::size_t block = 0; block < bytes.size(); block += 34) {  // its scale, an f16 of about 0.003
        bytes[block] = std::byte{0x24};
        bytes[block + 1] = std::byte{0x1A};
      }
    }
    std::vector<std::uint64_t> dims{k};
    if (rows > 1) dims.push_back(rows);
    file.add_tensor(tensor, dtype == DType::kF32 ? 0 : 8, dims, bytes.size());
    bytes.resize((bytes.size() + 31) / 32 * 32);
    data.insert(data.end(), bytes.begin(), bytes.end());
  };
  const auto norm = [&](const std::string& tensor) {
    for (const char* part : {".weight", ".bias"}) add(tensor + part, DType::kF32, 1, m.model_dim, 1.0f);
  };
  const auto linear = [&](const std::string& tensor, std::uint32_t out, std::uint32_t in) {
    add(tensor + ".weight", out > 1 ? m.matrix : DType::kF32, out, in, 0.2f);
    add(tensor + ".bias", DType::kF32, 1, out, 0.2f);
  };
  add("token_embd.weight", DType::kF32, m.n_embedded, m.model_dim, 1.0f);
  add("position_embd.weight", DType::kF32, m.n_positions, m.model_dim, 0.5f);
  if (m.n_types > 0) add("token_types.weight", DType::kF32, m.n_types, m.model_dim, 0.5f);
  norm("token_embd_norm");
  for (std::uint32_t layer = 0; layer < m.n_layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output"}) linear(at + part, m.model_dim, m.model_dim);
    norm(at + "attn_output_norm");
    linear(at + "ffn_up", m.ffn_dim, m.model_dim);
    linear(at + "ffn_down", m.model_dim, m.ffn_dim);
    norm(at + "layer_output_norm");
  }
  if (m.n_labels > 0) linear("cls.output", m.n_labels, m.model_dim);
  if (m.n_labels > 0 && m.has_dense) linear("cls", m.model_dim, m.model_dim);
  auto bytes = file.build();
  const std::size_t begin = (file.header_bytes + 31) / 32 * 32;
  std::memcpy(bytes.data() + begin, data.data(), bytes.size() - begin);
  const std::string path = model_folder() + "/" + name;
  gguf::write_file(path + ".gguf", bytes);
  return path;
}

}  // namespace zinc_rt
