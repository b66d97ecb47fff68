// SamplingParams are the numbers of a request that say how its tokens are picked.
// Thread rule: a plain value.
#pragma once

#include <cstdint>

namespace zinc_rt {

struct SamplingParams {
  float temperature = 0;         // 0: the most likely token is picked (greedy)
  std::uint32_t top_k = 0;       // only the k most likely tokens are kept; 0 turns it off
  float top_p = 1;               // the most likely tokens that reach this sum are kept; 1 turns it off
  float min_p = 0;               // tokens less likely than this part of the first are dropped; 0 turns it off
  float typical_p = 1;           // 1 turns it off; applied after the three above, to the tokens that they keep
  float repetition_penalty = 1;  // 1 turns it off; applies to prompt and generated tokens
  float presence_penalty = 0;    // 0 turns it off; applies to generated tokens
  float frequency_penalty = 0;   // 0 turns it off; applies to generated tokens
};

}  // namespace zinc_rt
