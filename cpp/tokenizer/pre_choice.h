// Chooses the pre-tokenizer of a byte-level vocabulary if its file does not name one.
// Thread rule: pure functions; may log.
#pragma once

#include "model/gguf/metadata.h"
#include "tokenizer/pre_rules.h"
#include "tokenizer/vocab.h"

namespace zinc_rt {

// The rule that tokenizer.ggml.pre names. The key may be missing, or be "default", which converters write when they do
// not know the vocabulary. Then it is the rule that architecture and vocabulary together make certain, else "default".
// The log says which, because a wrong rule gives other tokens than the model was trained on. Errors as find_pre_rule.
Result<const PreRule*> choose_pre_rule(const gguf::Metadata& metadata, const Vocab& vocab);

}  // namespace zinc_rt
