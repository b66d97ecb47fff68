// BERT's uncased WordPiece: a text becomes words of plain lower-case characters, and a word the longest tokens that it
// begins with, one after another. In the vocabulary a token that begins a word has U+2581 before it, one that goes on
// has nothing (Python's files say "##" for the latter, and converters rewrite them).
// Thread rule: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/encode_watch.h"
#include "tokenizer/vocab.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// Errors: kUnavailable for a vocabulary with upper-case letters, whose texts want another normalizer.
Status check_wordpiece(const Vocab& vocab);

// Appends the ids of `text`. A word that no tokens make, or of more than 100 characters, is `unknown`. Bytes that are no
// UTF-8, and control characters, are left out. False: the watch ended it. REQUIRES: a vocabulary that was checked.
bool encode_wordpiece(const Vocab& vocab, std::string_view text, TokenId unknown, std::vector<TokenId>& out,
                      EncodeWatch& watch);

}  // namespace zinc_rt
