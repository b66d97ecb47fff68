// This header collects the structs that the host fills and a kernel receives by value, for all kernels, together with
// the constants by which the host sizes a launch. Shared by host and device.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/digits_args.h"
#include "kernels/cuda/fixed_args.h"
#include "kernels/cuda/linear_args.h"
#include "kernels/cuda/op_args.h"
#include "kernels/cuda/step_args.h"
#include "kernels/cuda/wgmma_args.h"
