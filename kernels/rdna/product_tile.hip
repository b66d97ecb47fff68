// The product kernels for many columns (product_tile.h), for all formats but floats.
#include "kernels/rdna/product_tile.h"

ZRT_QUANT_FORMATS(ZRT_TILES)
