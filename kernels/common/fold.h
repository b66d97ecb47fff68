// The one way in which 16 partial sums become one (docs/arithmetic.md, rule 4): halves are added, 8 then 4 then 2
// then 1.
#pragma once

#include "kernels/common/exact_math.h"

namespace zinc_rt {

ZRT_HD float fold16(const float* v) {
  float a[8];
  for (int l = 0; l < 8; ++l) a[l] = v[l] + v[l + 8];
  for (int l = 0; l < 4; ++l) a[l] = a[l] + a[l + 4];
  for (int l = 0; l < 2; ++l) a[l] = a[l] + a[l + 2];
  return a[0] + a[1];
}

}  // namespace zinc_rt
