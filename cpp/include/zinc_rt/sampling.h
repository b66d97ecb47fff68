// SamplingParams are the numbers of a request that say how its tokens are picked.
// Thread rule: a plain value.
#pragma once

#include <cstdint>

namespace zinc_rt {

struct SamplingParams {
  float temperature = 0;    // 0: the most likely token is picked (greedy)
  std::uint32_t top_k = 0;  // only the k most likely tokens stay candidates; 0: all
  // Only the most likely tokens whose probabilities sum up to top_p are kept; 1: all.
  float top_p = 1;
  float min_p = 0;               // tokens with a probability below min_p times the largest are dropped; 0: none
  float typical_p = 1;           // 1: no effect; applied to the tokens that top_k, top_p and min_p keep
  float repetition_penalty = 1;  // 1: no effect; applies to prompt and generated tokens
  float presence_penalty = 0;    // 0: no effect; applies to generated tokens
  float frequency_penalty = 0;   // 0: no effect; applies to generated tokens
};

}  // namespace zinc_rt
