// One row of request.sampling: how the SAMPLE op picks a token. Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

struct SampleParams {
  uint32_t seed_lo,
      seed_hi;        // the request's seed; with `position` it keys the random number, so batching cannot move it
  uint32_t position;  // of the token to come
  float temperature;  // 0: the most likely token (ties: the lower id)
  uint32_t top_k;     // 0: off
  float top_p;        // 1: off
  float min_p;        // 0: off
  float repetition_penalty;  // 1: off; over prompt and generated tokens
  float presence_penalty;    // 0: off; over generated tokens
  float frequency_penalty;   // 0: off; over generated tokens
  uint32_t history_begin;    // of this row's tokens in request.history
  uint32_t n_prompt;         // the first n_prompt of them are the prompt
  uint32_t n_history;        // all of them
  float typical_p;           // 1: off
  uint32_t bias_begin;       // of this row's entries (token id, bits of a float) in request.bias
  uint32_t n_bias;           // 0: none
  uint32_t mask_begin;       // of this row's words in request.mask: bit t % 32 of word t / 32 allows token t
  uint32_t n_mask_words;     // 0: all tokens are allowed; else those past the last word are not
};
constexpr uint32_t kSampleParamWords = 18;
static_assert(sizeof(SampleParams) == 4 * kSampleParamWords, "words only");

inline constexpr uint32_t mask_words_of(uint32_t vocab_size) {
  return vocab_size / 32 + (vocab_size % 32 != 0 ? 1 : 0);
}

// In place of a token where the largest of a row's candidates is no finite number: a model whose weights are broken, or
// a request that forbids every token.
constexpr int32_t kSampleNone = -1;

}  // namespace zinc_rt
