// Products of weights of 256 values a block.
#include "kernels/rdna/linear.h"

ZRT_LINEAR(q2_k, Q2_K)
ZRT_LINEAR(q3_k, Q3_K)
ZRT_LINEAR(q4_k, Q4_K)
ZRT_LINEAR(q5_k, Q5_K)
ZRT_LINEAR(q6_k, Q6_K)
ZRT_LINEAR(iq4_xs, IQ4_XS)
ZRT_LINEAR(fixed16, Fixed16)
