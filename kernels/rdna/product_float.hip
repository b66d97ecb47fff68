// The product kernels (product.h) of weights that are floats.
#include "kernels/rdna/product.h"

ZRT_PRODUCTS(f32, F32)
ZRT_PRODUCTS(f16, F16)
ZRT_PRODUCTS(bf16, BF16)
