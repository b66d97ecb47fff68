// Converts a ChatConfig to GGUF's metadata keys. Some numbers of a ChatConfig are tensors in GGUF, which is why two
// functions return tensors. The reader of MLC folders uses both.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/gguf/metadata.h"
#include "model/mlc/chat_config.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

// Adds the keys general.* and <architecture>.* to `out`. `name` is the model's name for its model card.
Status add_model_keys(const ChatConfig& config, std::string name, gguf::Metadata& out);

// Returns the RoPE vectors that GGUF stores as f32 tensors, with their names: rope_freqs.weight, and
// rope_factors_short.weight and rope_factors_long.weight.
std::vector<std::pair<std::string, std::vector<float>>> rope_tensors(const ChatConfig& config);

}  // namespace zinc_rt::mlc
