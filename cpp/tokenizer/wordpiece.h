// Implements BERT's uncased WordPiece. A text becomes words of plain lower-case characters. A word becomes the longest
// token with which it begins, then the longest token with which its rest begins, and so on. In the vocabulary the text
// of a token that begins a word starts with U+2581. The text of a token that continues a word has no prefix. (Python's
// files instead write "##" before the tokens that continue a word; converters change this.)
// Thread rule: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/encode_watch.h"
#include "tokenizer/vocab.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// Checks that encode_wordpiece() can use the vocabulary. Errors: kUnavailable for a vocabulary with upper-case letters,
// because such a model needs another normalizer.
Status check_wordpiece(const Vocab& vocab);

// Appends the ids of `text` to `out`. A word that tokens cannot compose, or that has more than 100 characters, becomes
// `unknown`. Control characters and bytes that are not UTF-8 are left out. Returns false if the watch ended the call.
// REQUIRES: check_wordpiece(vocab) succeeded.
bool encode_wordpiece(const Vocab& vocab, std::string_view text, TokenId unknown, std::vector<TokenId>& out,
                      EncodeWatch& watch);

}  // namespace zinc_rt
