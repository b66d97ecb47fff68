// GGUF's keys for a model that a ChatConfig describes, and the tensors that a ChatConfig holds as numbers.
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

// Vectors that GGUF stores as f32 tensors: rope_freqs.weight, rope_factors_{short,long}.weight.
std::vector<std::pair<std::string, std::vector<float>>> rope_tensors(const ChatConfig& config);

}  // namespace zinc_rt::mlc
