// The end of an image's source: the list of its kernels, for the driver.
#pragma once

#include <memory>

#include "cuda_sim/workgroup.h"

namespace cuda_sim {

template <auto kFunction>
struct Call;
template <class Args, void (*kFunction)(Args)>
struct Call<kFunction> {
  static void call(const void* args) { kFunction(*static_cast<const Args*>(args)); }
  static constexpr std::size_t kArgsBytes = sizeof(Args);
};
template <auto kFunction>
constexpr Kernel kernel_of(const char* name) {
  return {name, Call<kFunction>::kArgsBytes, Call<kFunction>::call};
}

}  // namespace cuda_sim
