// How a token is picked: the numbers that a request gives. They travel as one value from there to the pick.
// Thread rule: a plain value.
#pragma once

#include <cstdint>

namespace zinc_rt {

struct SamplingParams {
  float temperature = 0;         // 0: greedy
  std::uint32_t top_k = 0;       // 0: off
  float top_p = 1;               // 1: off
  float min_p = 0;               // 0: off
  float typical_p = 1;           // 1: off; of what the above leave, after them
  float repetition_penalty = 1;  // 1: off; prompt and generated tokens
  float presence_penalty = 0;    // 0: off; generated tokens
  float frequency_penalty = 0;   // 0: off; generated tokens
};

}  // namespace zinc_rt
