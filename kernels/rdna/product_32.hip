// The product kernels (product.h) of the formats with blocks of 32 weights.
#include "kernels/rdna/product.h"

ZRT_QUANTIZED_PRODUCTS(q4_0, Q4_0)
ZRT_QUANTIZED_PRODUCTS(q4_1, Q4_1)
ZRT_QUANTIZED_PRODUCTS(q5_0, Q5_0)
ZRT_QUANTIZED_PRODUCTS(q5_1, Q5_1)
ZRT_QUANTIZED_PRODUCTS(q8_0, Q8_0)
ZRT_QUANTIZED_PRODUCTS(iq4_nl, IQ4_NL)
ZRT_QUANTIZED_PRODUCTS(mxfp4, MXFP4)
