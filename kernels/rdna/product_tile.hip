// Products of many columns of quantized weights (product_tile.h).
#include "kernels/rdna/product_tile.h"

ZRT_QUANT_FORMATS(ZRT_TILES)
