// Any bytes as a GGUF file: parse, read the config, and touch the first and last byte of every tensor. Nothing may
// crash, and an accepted file keeps the promises of ParsedFile and ModelConfig.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/config.h"
#include "model/gguf/reader.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check_tensor(const zinc_rt::gguf::TensorInfo& tensor, std::span<const std::byte> file) {
  expect(tensor.n_dims >= 1 && tensor.n_dims <= tensor.dims.size());
  std::uint64_t n_rows = 1;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    expect(tensor.dims[d] >= 1 && (d < tensor.n_dims || tensor.dims[d] == 1));
    if (d > 0) n_rows *= tensor.dims[d];
  }
  expect(tensor.n_bytes == n_rows * zinc_rt::row_bytes(tensor.dtype, tensor.dims[0]));
  const auto data = file.subspan(tensor.offset, tensor.n_bytes);
  volatile auto touched = data.front() ^ data.back();
  static_cast<void>(touched);
}

void check_config(const zinc_rt::ModelConfig& config) {
  expect(config.n_layers >= 1 && config.model_dim >= 1 && config.vocab_size >= 1 && config.context_length >= 1);
  expect(config.n_kv_heads_per_layer.size() == config.n_layers && config.ffn_dim_per_layer.size() == config.n_layers);
  expect(config.n_kv_heads >= 1);
  for (const std::uint32_t n_kv_heads : config.n_kv_heads_per_layer)
    expect(n_kv_heads == 0 || config.n_heads % n_kv_heads == 0);
  expect(config.is_sliding.empty() || config.is_sliding.size() == config.n_layers);
  expect(config.is_recurrent.size() == config.n_layers);
  expect(config.rope_dim % 2 == 0 && config.rope_dim <= config.head_dim && config.head_dim >= 1);
  expect(config.sliding_rope_dim % 2 == 0 && config.sliding_rope_dim <= config.sliding_head_dim);
  expect(config.n_shared_kv_layers < config.n_layers);
  expect(config.n_experts_used <= config.n_experts);
  expect(config.norm_eps >= 0 && config.rope_theta >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto parsed = zinc_rt::gguf::parse(file, "fuzz.gguf");
  if (!parsed) {
    expect(!parsed.error().message.empty());
    return 0;
  }
  for (const auto& tensor : parsed->tensors) check_tensor(tensor, file);
  const auto config = zinc_rt::read_config(parsed->metadata, parsed->tensors);
  expect(config || !config.error().message.empty());
  if (config) check_config(*config);
  return 0;
}
