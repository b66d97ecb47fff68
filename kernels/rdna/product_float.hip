// Products of weights that are floats (product.h).
#include "kernels/rdna/product.h"

ZRT_PRODUCTS(f32, F32)
ZRT_PRODUCTS(f16, F16)
ZRT_PRODUCTS(bf16, BF16)
