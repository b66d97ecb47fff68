// How routers of experts divide the weights of the chosen experts by their sum.
#pragma once

#include "kernels/common/exact_math.h"

namespace zinc_rt {

// Returns the factor that divides the weights of the chosen experts by their sum. Sigmoids of very negative logits, and
// likelihoods of experts that a bias chooses, may be so small that rcp() is not defined for their sum, or all 0. Such
// weights stay as they are. A sum that is NaN gives NaN.
ZRT_HD float inverse_of_weights(float sum) {
  constexpr float kLeast = 2.3509887e-38f;  // 2^-125, the least argument of rcp()
  return exact::rcp(sum < kLeast ? 1.0f : sum);
}

}  // namespace zinc_rt
