// NVIDIA's driver as far as T-CUDA calls it (cpp/ring/cuda/driver.h), over a GPU that is this process: device memory is
// host memory, and what is launched has run when the call returns. Calls that a real driver refuses are refused. The
// program finds it where LD_LIBRARY_PATH names its folder.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_sim/workgroup.h"
#include "ring/cuda/images.h"

namespace {

using zinc_rt::ring::kStandIn;

constexpr std::size_t kPoisoned = 1u << 20;
// Dynamic shared memory of a launch whose kernel's limit was not raised. A GPU allows 48 KiB together with what the
// kernel declares itself; that is not known here, and 32 KiB at most.
constexpr std::size_t kDefaultShared = 16u << 10;

// The device's memory: ZRT_CUDA_SIM_BYTES, or 8 GiB. Tests change it as they run.
std::size_t device_bytes() {
  const char* bytes = std::getenv("ZRT_CUDA_SIM_BYTES");
  return bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : std::size_t{8} << 30;
}

// Bytes of shared memory that a workgroup may have: ZRT_CUDA_SIM_SHARED, or those of an H200.
std::size_t most_shared() {
  const char* bytes = std::getenv("ZRT_CUDA_SIM_SHARED");
  return bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : std::size_t{227} << 10;
}

struct Launch {
  const cuda_sim::Kernel* kernel;
  cuda_sim::Index grid, block;
  std::size_t shared;
  std::vector<std::byte> args;
};

// The image that was compiled from the same source, and its functions.
struct Module {
  void* library;
  const cuda_sim::Kernel* kernels;
  std::size_t n;
};

std::atomic<unsigned long> n_calls{0};
std::mutex mutex;
// Two devices, each with a context, which threads make current.
constexpr int kDevices = 2;
struct Allocation {
  std::size_t bytes;
  CUcontext context;
};
std::map<std::uintptr_t, Allocation> allocations;
std::size_t allocated[kDevices] = {};
thread_local CUcontext current = nullptr;
std::map<const cuda_sim::Kernel*, std::size_t> shared_limits;
std::map<const cuda_sim::Kernel*, unsigned long> n_launches;

// Whether all of it is memory of the device that the stream is of.
bool is_device(CUdeviceptr at, std::size_t bytes, CUstream stream);

void run(const Launch& launch) {
  ++n_launches[launch.kernel];
  cuda_sim::run_grid(*launch.kernel, launch.args.data(), launch.grid, launch.block, launch.shared);
}

// Stand-ins name their image. Device code is known by its bytes, which the build has packed into the program:
// FOLDER/NAME.fatbin is that of FOLDER/NAME.so.
std::string name_of_image(const void* image) {
  const auto* at = static_cast<const char*>(image);
  if (std::strncmp(at, kStandIn.data(), kStandIn.size()) == 0) return at + kStandIn.size();
  static const auto images = [] {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::directory_iterator(ZRT_CUDA_IMAGES)) {
      if (entry.path().extension() != ".fatbin") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      contents[entry.path().stem()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return contents;
  }();
  // A fat binary begins with a magic number, its version, the size of the header and that of what follows.
  std::uint16_t header;
  std::uint64_t rest;
  std::memcpy(&header, at + 6, sizeof(header));
  std::memcpy(&rest, at + 8, sizeof(rest));
  for (const auto& [name, content] : images)
    if (content.size() == header + rest && std::memcmp(content.data(), image, content.size()) == 0) return name;
  return {};
}

}  // namespace

struct CUctx_st {
  int device;
};
struct CUstream_st {
  CUcontext context = nullptr;
  CUgraph capture = nullptr;
};
struct CUgraph_st {
  std::vector<Launch> launches;
};
struct CUgraphExec_st {
  std::vector<Launch> launches;
};
struct CUevent_st {};
struct CUmod_st {
  Module module;
};
namespace {

CUctx_st contexts[kDevices] = {{0}, {1}};

bool is_device(CUdeviceptr at, std::size_t bytes, CUstream stream) {
  auto it = allocations.upper_bound(at);
  if (it == allocations.begin()) return false;
  --it;
  return it->second.context == stream->context && at - it->first <= it->second.bytes &&
         bytes <= it->second.bytes - (at - it->first);
}

// Work for a stream comes from threads where its context is current.
bool is_current(CUstream stream) {
  return current != nullptr && stream->context == current;
}

}  // namespace

extern "C" {

// For tests: calls of the driver since the program began.
unsigned long cuda_sim_calls() {
  return n_calls;
}
// Of the kernels of a name.
unsigned long cuda_sim_launches(const char* name) {
  const std::lock_guard lock(mutex);
  unsigned long n = 0;
  for (const auto& [kernel, launches] : n_launches)
    if (std::strcmp(kernel->name, name) == 0) n += launches;
  return n;
}

CUresult cuInit(unsigned) {
  ++n_calls;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  ++n_calls;
  return *version = CUDA_VERSION, CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  ++n_calls;
  return *text = "refused by cuda_sim", CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* n) {
  ++n_calls;
  return *n = kDevices, CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  ++n_calls;
  if (index < 0 || index >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  return *device = index, CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  ++n_calls;
  std::strncpy(name, "cuda_sim: the kernels on this processor", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  ++n_calls;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = static_cast<int>(most_shared());
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  ++n_calls;
  return *bytes = device_bytes(), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  ++n_calls;
  return *out = &contexts[device], CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  ++n_calls;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  ++n_calls;
  return current = context, CUDA_SUCCESS;
}

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *total = device_bytes();
  return *free = *total - std::min(allocated[current->device], *total), CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* at, std::size_t bytes) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::size_t& used = allocated[current->device];
  if (const std::size_t total = device_bytes(); used > total || bytes > total - used) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = nullptr;
  if (::posix_memalign(&memory, 256, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  // NaN, so that what is read before it is written shows; not all of large ones, most of which no test touches.
  std::memset(memory, 0xFF, std::min(bytes, kPoisoned));
  *at = reinterpret_cast<CUdeviceptr>(memory);
  allocations[*at] = {bytes, current};
  used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  const auto it = allocations.find(at);
  if (it == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  allocated[it->second.context->device] -= it->second.bytes;
  allocations.erase(it);
  std::free(reinterpret_cast<void*>(at));
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  ++n_calls;
  return ::posix_memalign(at, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void* at) {
  ++n_calls;
  return std::free(at), CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char byte, std::size_t n, CUstream stream) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (!is_current(stream) || !is_device(at, n, stream)) return CUDA_ERROR_INVALID_VALUE;
  return std::memset(reinterpret_cast<void*>(at), byte, n), CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t n, CUstream stream) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (!is_current(stream) || !is_device(to, n, stream)) return CUDA_ERROR_INVALID_VALUE;
  return std::memcpy(reinterpret_cast<void*>(to), from, n), CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t n, CUstream stream) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (!is_current(stream) || !is_device(from, n, stream)) return CUDA_ERROR_INVALID_VALUE;
  return std::memcpy(to, reinterpret_cast<const void*>(from), n), CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  ++n_calls;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return *stream = new CUstream_st{current}, CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  ++n_calls;
  return delete stream, CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) {
  ++n_calls;
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream) {
  ++n_calls;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  ++n_calls;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  return stream->capture = new CUgraph_st, CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  ++n_calls;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = stream->capture;
  stream->capture = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  ++n_calls;
  return *event = new CUevent_st, CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  ++n_calls;
  return delete event, CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) {
  ++n_calls;
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) {
  ++n_calls;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  const std::string name = name_of_image(image);
  if (name.empty()) return CUDA_ERROR_INVALID_IMAGE;
  void* library = ::dlopen((ZRT_CUDA_SIM_IMAGES "/" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) cuda_sim::stop(::dlerror());
  using List = const cuda_sim::Kernel* (*)(std::size_t*);
  Module module{library, nullptr, 0};
  module.kernels = reinterpret_cast<List>(::dlsym(library, "cuda_sim_kernels"))(&module.n);
  *out = new CUmod_st{module};
  return CUDA_SUCCESS;
}
// The library stays: its kernels' limits are kept by address.
CUresult cuModuleUnload(CUmodule module) {
  ++n_calls;
  return delete module, CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  ++n_calls;
  for (std::size_t i = 0; i < module->module.n; ++i)
    if (std::strcmp(module->module.kernels[i].name, name) == 0)
      return *out = reinterpret_cast<CUfunction>(const_cast<cuda_sim::Kernel*>(&module->module.kernels[i])),
             CUDA_SUCCESS;
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<std::size_t>(value) > most_shared())
    return CUDA_ERROR_INVALID_VALUE;
  shared_limits[reinterpret_cast<const cuda_sim::Kernel*>(function)] = static_cast<std::size_t>(value);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* at,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  ++n_calls;
  const auto is_whole = [](std::uint64_t n) { return n != 0 && n % 16 == 0; };
  if (type != CU_TENSOR_MAP_DATA_TYPE_UINT16 || rank != 3 || reinterpret_cast<std::uintptr_t>(at) % 16 != 0 ||
      !is_whole(strides[0]) || !is_whole(strides[1]) || box[0] != 64 || box[1] == 0 || box[1] > 256 || box[2] != 1 ||
      std::any_of(steps, steps + 3, [](cuuint32_t step) { return step != 1; }) ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle != CU_TENSOR_MAP_SWIZZLE_128B)
    return CUDA_ERROR_INVALID_VALUE;
  const cuda_sim::Tensor tensor{
      static_cast<const std::uint8_t*>(at), {dims[0], dims[1], dims[2]}, {strides[0], strides[1]}, box[1]};
  static_assert(sizeof(tensor) <= sizeof(*map));
  std::memcpy(map, &tensor, sizeof(tensor));
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void**) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (!is_current(config->hStream)) return CUDA_ERROR_INVALID_CONTEXT;
  const auto* kernel = reinterpret_cast<const cuda_sim::Kernel*>(function);
  const auto limit = shared_limits.find(kernel);
  if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || config->gridDimY > 65535 ||
      config->gridDimZ > 65535 || config->blockDimX == 0 || config->blockDimX > 1024 ||
      config->sharedMemBytes > (limit != shared_limits.end() ? limit->second : kDefaultShared))
    return CUDA_ERROR_INVALID_VALUE;
  const auto* args = static_cast<const std::byte*>(params[0]);
  Launch launch{kernel,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes,
                {args, args + kernel->args_bytes}};
  if (config->hStream->capture != nullptr)
    config->hStream->capture->launches.push_back(std::move(launch));
  else
    run(launch);
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  ++n_calls;
  return *out = new CUgraphExec_st{graph->launches}, CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  ++n_calls;
  return delete graph, CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  ++n_calls;
  return delete graph, CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  ++n_calls;
  const std::lock_guard lock(mutex);
  if (!is_current(stream)) return CUDA_ERROR_INVALID_CONTEXT;
  for (const Launch& launch : graph->launches) run(launch);
  return CUDA_SUCCESS;
}

}  // extern "C"
