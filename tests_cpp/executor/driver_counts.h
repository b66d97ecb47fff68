// What the driver of the tests (tests_cpp/cuda_sim) has counted; NVIDIA's counts nothing.
#pragma once

#include <dlfcn.h>

namespace zinc_rt {

using CallCount = unsigned long (*)();
using LaunchCount = unsigned long (*)(const char* kernel);

// Null where the driver has no such function.
template <class Count>
Count find_count(const char* name) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Count>(::dlsym(driver, name)) : nullptr;
}

}  // namespace zinc_rt
