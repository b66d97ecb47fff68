// Chooses the pre-tokenizer of a byte-level vocabulary, which cuts text into words before BPE merges within each word.
// Thread rule: pure functions; may log.
#pragma once

#include "model/gguf/metadata.h"
#include "tokenizer/pre_rules.h"
#include "tokenizer/vocab.h"

namespace zinc_rt {

// Returns the rule that tokenizer.ggml.pre names. The key may be missing, or be "default", which converters write if
// they do not know the vocabulary. Then the rule is chosen by architecture and vocabulary if these determine it.
// Otherwise the rule "default" is returned. The choice is logged, because a wrong rule produces other tokens than the
// model was trained on. Errors: those of find_pre_rule.
Result<const PreRule*> choose_pre_rule(const gguf::Metadata& metadata, const Vocab& vocab);

}  // namespace zinc_rt
