#include "ring/cuda/driver.h"

#include <dlfcn.h>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

Result<Driver> find_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(StatusCode::kUnavailable, "[t_cuda] NVIDIA's driver is not installed ({})", ::dlerror());
  Driver driver;
  const char* missing = nullptr;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
#define ZRT_CUDA_TEXT(name) #name
#define ZRT_CUDA_FIND(name) find(driver.name, ZRT_CUDA_TEXT(name));
  ZRT_CUDA_FUNCTIONS(ZRT_CUDA_FIND)
#undef ZRT_CUDA_FIND
#undef ZRT_CUDA_TEXT
  if (missing != nullptr)
    return fail(StatusCode::kUnavailable, "[t_cuda] NVIDIA's driver is too old: it has no {}; version 12.3 is wanted",
                missing);
  ZRT_CHECK_OK(driver.check(driver.cuInit(0), "cuInit"));
  return driver;
}

}  // namespace

Status Driver::check(CUresult result, std::string_view attempt) const {
  if (result == CUDA_SUCCESS) return {};
  const char* words = nullptr;
  if (cuGetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) words = "unknown error";
  const auto code = result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::kExhausted
                    : result == CUDA_ERROR_NO_DEVICE   ? StatusCode::kUnavailable
                                                       : StatusCode::kInternal;
  return fail(code, "[t_cuda] {}: {} (error {})", attempt, words, static_cast<int>(result));
}

Result<const Driver*> load_driver() {
  static const Result<Driver> driver = find_driver();
  if (!driver) return std::unexpected(driver.error());
  return &*driver;
}

}  // namespace zinc_rt::ring
