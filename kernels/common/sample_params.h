// How the op SAMPLE picks the token of one row of logits: the words of `params` (kernels/cpu/sample.cpp has the steps).
// Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

struct SampleParams {
  uint32_t seed_lo,
      seed_hi;               // the request's seed: the random number depends on it and `position` alone
  uint32_t position;         // the position of the token that is picked
  float temperature;         // 0: the most likely token is picked (on a tie the lower id)
  uint32_t top_k;            // 0: off
  float top_p;               // 1: off
  float min_p;               // 0: off
  float repetition_penalty;  // 1: off; applies to tokens of the prompt and generated ones
  float presence_penalty;    // 0: off; applies to generated tokens
  float frequency_penalty;   // 0: off; applies to generated tokens
  uint32_t history_begin;    // where this row's tokens begin in request.history
  uint32_t n_prompt;         // how many of them are the prompt; they come first
  uint32_t n_history;        // how many there are
  float typical_p;           // 1: off
  uint32_t bias_begin;       // where this row's pairs (token id, bits of a float) begin in request.bias
  uint32_t n_bias;           // how many of these pairs there are
  uint32_t mask_begin;       // where this row's words begin in request.mask: bit t % 32 of word t / 32 allows token t
  uint32_t n_mask_words;     // 0: all tokens are allowed; else tokens past the last word are forbidden
};
constexpr uint32_t kSampleParamWords = 18;
static_assert(sizeof(SampleParams) == 4 * kSampleParamWords, "words only");

// Returns the words of a mask over the whole vocabulary.
inline constexpr uint32_t mask_words_of(uint32_t vocab_size) {
  return vocab_size / 32 + (vocab_size % 32 != 0 ? 1 : 0);
}

// The result in place of a token if a row's largest logit is not finite: the model's weights are broken, or the request
// forbids every token.
constexpr int32_t kSampleNone = -1;

}  // namespace zinc_rt
