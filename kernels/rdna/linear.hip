// Products of weights of 32 values a block, or of floats.
#include "kernels/rdna/linear.h"

ZRT_LINEAR(f32, F32)
ZRT_LINEAR(f16, F16)
ZRT_LINEAR(bf16, BF16)
ZRT_LINEAR(q4_0, Q4_0)
ZRT_LINEAR(q4_1, Q4_1)
ZRT_LINEAR(q5_0, Q5_0)
ZRT_LINEAR(q5_1, Q5_1)
ZRT_LINEAR(q8_0, Q8_0)
ZRT_LINEAR(iq4_nl, IQ4_NL)
ZRT_LINEAR(mxfp4, MXFP4)
