// What host and device agree on for all kernels: their arguments, passed by value, and the shapes of launches.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/digits_args.h"
#include "kernels/cuda/fixed_args.h"
#include "kernels/cuda/linear_args.h"
#include "kernels/cuda/op_args.h"
#include "kernels/cuda/step_args.h"
#include "kernels/cuda/wgmma_args.h"
