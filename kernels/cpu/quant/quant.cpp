#include "kernels/cpu/quant/quant.h"
