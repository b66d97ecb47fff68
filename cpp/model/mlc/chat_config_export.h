// Converts a model's config from GGUF's keys to mlc-chat-config.json, for the writer of MLC folders. Thread rule: pure
// functions.
#pragma once

#include <string>

#include "model/mlc/chat_config.h"
#include "model/mlc/tokenizer_export.h"
#include "model/weights.h"

namespace zinc_rt::mlc {

// Returns the ChatConfig of a model whose weights will be stored as q4f16_1. Errors: kUnavailable for a family or
// property that MLC's llama and phi3 do not support. The error names the key.
Result<ChatConfig> config_of(const Weights& weights);

// Returns the text of mlc-chat-config.json. `chat_template` is the template from the GGUF file; empty if it has none.
std::string export_chat_config(const ChatConfig& config, const TokenizerTexts& tokenizer,
                               std::string_view chat_template);

}  // namespace zinc_rt::mlc
