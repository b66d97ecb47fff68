// The product kernels (product.h) of the formats with blocks of 256 weights.
#include "kernels/rdna/product.h"

ZRT_QUANTIZED_PRODUCTS(q2_k, Q2_K)
ZRT_QUANTIZED_PRODUCTS(q3_k, Q3_K)
ZRT_QUANTIZED_PRODUCTS(q4_k, Q4_K)
ZRT_QUANTIZED_PRODUCTS(q5_k, Q5_K)
ZRT_QUANTIZED_PRODUCTS(q6_k, Q6_K)
ZRT_QUANTIZED_PRODUCTS(iq4_xs, IQ4_XS)
ZRT_QUANTIZED_PRODUCTS(fixed16, Fixed16)
