// Converts a ChatConfig to GGUF's metadata keys, and to the tensors that a ChatConfig stores as numbers.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/gguf/metadata.h"
#include "model/mlc/chat_config.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

// Adds general.* and <architecture>.*; `name` is for the model card.
Status add_model_keys(const ChatConfig& config, std::string name, gguf::Metadata& out);

// Returns the vectors that GGUF stores as f32 tensors: rope_freqs.weight, rope_factors_{short,long}.weight.
std::vector<std::pair<std::string, std::vector<float>>> rope_tensors(const ChatConfig& config);

}  // namespace zinc_rt::mlc
