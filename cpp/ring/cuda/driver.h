// NVIDIA's driver, loaded at run time. No NVIDIA library is linked, so the program starts without them.
// Thread rule: immutable once loaded.
#pragma once

#include <cuda.h>

#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// The functions of the driver that this tier calls. cuda.h maps some of these names to newer versions by macros; the
// macros rename the members of Driver and the symbols that are looked up in the same way.
#define ZRT_CUDA_FUNCTIONS(X)    \
  X(cuInit)                      \
  X(cuDriverGetVersion)          \
  X(cuGetErrorString)            \
  X(cuDeviceGetCount)            \
  X(cuDeviceGet)                 \
  X(cuDeviceGetName)             \
  X(cuDeviceGetAttribute)        \
  X(cuDeviceTotalMem)            \
  X(cuDevicePrimaryCtxRetain)    \
  X(cuDevicePrimaryCtxRelease)   \
  X(cuCtxSetCurrent)             \
  X(cuMemGetInfo)                \
  X(cuMemAlloc)                  \
  X(cuMemFree)                   \
  X(cuMemHostAlloc)              \
  X(cuMemFreeHost)               \
  X(cuMemsetD8Async)             \
  X(cuMemcpyHtoDAsync)           \
  X(cuMemcpyDtoHAsync)           \
  X(cuStreamCreate)              \
  X(cuStreamDestroy)             \
  X(cuStreamSynchronize)         \
  X(cuStreamQuery)               \
  X(cuStreamBeginCapture)        \
  X(cuStreamEndCapture)          \
  X(cuEventCreate)               \
  X(cuEventDestroy)              \
  X(cuEventRecord)               \
  X(cuEventSynchronize)          \
  X(cuModuleLoadData)            \
  X(cuModuleUnload)              \
  X(cuModuleGetFunction)         \
  X(cuFuncSetAttribute)          \
  X(cuTensorMapEncodeTiled)      \
  X(cuLaunchKernelEx)            \
  X(cuGraphInstantiateWithFlags) \
  X(cuGraphExecDestroy)          \
  X(cuGraphDestroy)              \
  X(cuGraphLaunch)

// The driver's functions, each as a member of the same name.
struct Driver {
#define ZRT_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  ZRT_CUDA_FUNCTIONS(ZRT_CUDA_MEMBER)
#undef ZRT_CUDA_MEMBER

  // Returns ok if result is CUDA_SUCCESS, else an error with `attempt` (the action that failed) and the driver's
  // description.
  Status check(CUresult result, std::string_view attempt) const;
};

// Loads and initializes the driver once. Errors: kUnavailable, with what is missing.
Result<const Driver*> load_driver();

}  // namespace zinc_rt::ring
