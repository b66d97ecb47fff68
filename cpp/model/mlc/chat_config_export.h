// Converts a model's config from GGUF to mlc-chat-config.json.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "model/mlc/chat_config.h"
#include "model/mlc/tokenizer_export.h"
#include "model/weights.h"

namespace zinc_rt::mlc {

// Returns the ChatConfig for q4f16_1 weights of this model. Errors: kUnavailable, naming the key, for a family or
// property that MLC's llama and phi3 do not support.
Result<ChatConfig> config_of(const Weights& weights);

// Returns the text of mlc-chat-config.json.
std::string export_chat_config(const ChatConfig& config, const TokenizerTexts& tokenizer,
                               std::string_view chat_template);

}  // namespace zinc_rt::mlc
