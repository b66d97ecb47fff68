// ChatConfig holds what mlc-chat-config.json says about a model: the family, its sizes, and how the parameters are
// stored. The reader and the writer of MLC folders use it.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

enum class RopeScaling : std::uint8_t { kNone, kLlama3, kLongrope };

struct ChatConfig {
  std::string model_type;    // MLC's name of the family: llama, mistral, phi3, phi3_v
  std::string architecture;  // GGUF's name of the family: llama, phi3
  std::string quantization;  // how weights are stored: q4f16_1, q4f16_2, q0f16 or q0f32
  bool quantized_layers = false;
  bool quantized_ends = false;  // whether the embedding and output matrices are quantized

  std::uint64_t n_layers = 0;
  std::uint64_t model_dim = 0;
  std::uint64_t ffn_dim = 0;
  std::uint64_t n_heads = 0;
  std::uint64_t n_kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t vocab_size = 0;
  std::uint64_t context_length = 0;
  std::uint64_t sliding_window = 0;  // number of tokens in the window; 0: no window
  bool tied_embeddings = false;
  double norm_eps = 0;

  double rope_theta = 10000;
  std::uint64_t rope_dim = 0;
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1, rope_low_freq = 1, rope_high_freq = 4;  // used only for kLlama3
  std::uint64_t rope_original_context = 0;                        // used only for kLlama3 and kLongrope
  std::vector<double> rope_short, rope_long;                      // used by kLongrope; rope_dim / 2 numbers each

  std::optional<std::uint64_t> bos_id;
  std::vector<std::uint64_t> eos_ids;
};

// Parses the text of mlc-chat-config.json. `place` is the file name for messages. Only what model/config accepts is
// accepted: sizes of at least 1, head counts that divide each other, products that do not overflow. Errors: kCorrupt or
// kNotFound for a wrong or missing value; kUnavailable for a family or quantization that is not supported.
Result<ChatConfig> parse_chat_config(std::string_view text, const std::string& place);

// Returns the divisors of Llama 3's RoPE frequencies, one per pair (rope_dim / 2 in all). A divisor of 1 leaves the
// frequency unscaled.
std::vector<float> llama3_divisors(const ChatConfig& config);
// Returns the factor by which LongRoPE multiplies cos and sin.
double longrope_attn_factor(const ChatConfig& config);

}  // namespace zinc_rt::mlc
