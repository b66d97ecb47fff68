// Which pre-tokenizer a byte-level vocabulary has, where its file does not say so.
// Thread rule: pure functions; may log.
#pragma once

#include "model/gguf/metadata.h"
#include "tokenizer/pre_rules.h"
#include "tokenizer/vocab.h"

namespace zinc_rt {

// The rule that tokenizer.ggml.pre names. Without the key, or with "default", which converters write for what they do
// not know, it is the one that the architecture together with the vocabulary makes certain, else "default"; the log
// says which it is, since a wrong one gives other tokens than the model has learned.
// Errors as find_pre_rule.
Result<const PreRule*> choose_pre_rule(const gguf::Metadata& metadata, const Vocab& vocab);

}  // namespace zinc_rt
