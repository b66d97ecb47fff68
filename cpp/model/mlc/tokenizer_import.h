// Converts tokenizer.json and tokenizer_config.json to GGUF's tokenizer.* keys, for the reader of MLC folders.
//
// Two kinds of vocabulary are supported. BPE on characters, with U+2581 for the space and bytes as "<0xNN>" (Llama 2,
// Phi-3), becomes SentencePiece's model "llama". Byte-level BPE (Llama 3, SmolLM2) becomes model "gpt2". Anything that
// the keys cannot express is refused with kUnavailable, because the result must tokenize every text as the folder's own
// files do.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "model/gguf/metadata.h"
#include "model/mlc/chat_config.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct TokenizerFiles {
  std::string folder;     // path of the folder, for messages
  std::string tokenizer;  // text of tokenizer.json
  std::string config;     // content of tokenizer_config.json; empty if the folder has none
};

// Adds the tokenizer.* keys to `out`. The token list gets config.vocab_size entries. Rows of the embedding matrix that
// no token uses are called "[PADn]".
Status add_tokenizer(const TokenizerFiles& files, const ChatConfig& config, gguf::Metadata& out);

}  // namespace zinc_rt::mlc
