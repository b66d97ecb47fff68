#include "ring/cuda/cuda_ring.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ring/cuda/images.h"
#include "ring/gpu/fit.h"
#include "ring/wait.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint64_t kStagingBytes = 32u << 20;  // bytes of one half of the staging memory
// Device memory kept back for what is not a buffer object: staging, kernel code, graphs, copies of small operands, and
// the loss from the driver's pages of 2 MiB.
constexpr std::uint64_t kReserveBytes = 2 * kStagingBytes + (192u << 20);
constexpr int kLeastMajor = 8;  // compute capability 8.0, for which the images' PTX was compiled

CUdeviceptr device_pointer(const std::byte* at) {
  return reinterpret_cast<CUdeviceptr>(at);
}

}  // namespace

Result<CUdevice> find_cuda_device(const Driver& driver, std::uint32_t index) {
  int n = 0;
  if (driver.cuDeviceGetCount(&n) != CUDA_SUCCESS || n == 0)
    return fail(StatusCode::kUnavailable, "[t_cuda] NVIDIA's driver is there, but it shows no GPU");
  if (index >= static_cast<std::uint32_t>(n))
    return fail(StatusCode::kInvalidArgument, "[t_cuda] GPU {}, NVIDIA's driver shows {}", index, n);
  CUdevice device = 0;
  ZRT_CHECK_OK(driver.check(driver.cuDeviceGet(&device, static_cast<int>(index)), "cuDeviceGet"));
  int major = 0;
  ZRT_CHECK_OK(driver.check(driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                            "cuDeviceGetAttribute"));
  if (major < kLeastMajor)
    return fail(StatusCode::kUnavailable, "[t_cuda] GPU {} has compute capability {}.x, {}.0 is wanted", index, major,
                kLeastMajor);
  return device;
}

Result<std::unique_ptr<Ring>> CudaRing::make(std::uint32_t device, bool fast) {
  ZRT_TRY(const Driver* driver, load_driver());
  auto ring = std::unique_ptr<CudaRing>(new CudaRing(*driver, fast));
  ZRT_CHECK_OK(ring->open(device));
  return std::unique_ptr<Ring>(std::move(ring));
}

Status CudaRing::open(std::uint32_t device) {
  ZRT_TRY(device_, find_cuda_device(driver_, device));
  ZRT_CHECK_OK(driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  ZRT_CHECK_OK(use_device());
  ZRT_CHECK_OK(driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver_.cuDeviceGetAttribute(&value, which, device_);
    return value;
  };
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  overlaps_launches_ = major >= 9;
  profile_.has_wgmma = major == 9;
  profile_.is_fast = profile_.is_fast && profile_.has_wgmma;
  profile_.multiprocessors = static_cast<std::uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  profile_.most_shared = static_cast<std::uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  char name[128] = {};
  driver_.cuDeviceGetName(name, sizeof(name), device_);
  std::size_t total = 0;
  driver_.cuDeviceTotalMem(&total, device_);
  int version = 0;
  driver_.cuDriverGetVersion(&version);
  description_ = fmt::format("{}, {} multiprocessors, {} MiB, driver for CUDA {}.{}", name, profile_.multiprocessors,
                             total >> 20, version / 1000, version % 1000 / 10);
  table_ = make_cuda_table();
  void* pinned = nullptr;
  constexpr std::size_t kPinned = cuda::kHeaders * sizeof(cuda::StepHeader) + 256;
  ZRT_CHECK_OK(
      driver_.check(driver_.cuMemHostAlloc(&pinned, kPinned, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
                    "cuMemHostAlloc"));
  std::memset(pinned, 0, kPinned);
  pinned_ = static_cast<std::byte*>(pinned);
  headers_ = reinterpret_cast<cuda::StepHeader*>(pinned_);
  done_ = reinterpret_cast<std::atomic<std::uint32_t>*>(pinned_ + cuda::kHeaders * sizeof(cuda::StepHeader));
  ZRT_TRY(words_, alloc_device(driver_, 512));
  ZRT_CHECK_OK(driver_.check(driver_.cuMemsetD8Async(device_pointer(words_), 0, 512, stream_), "cuMemsetD8Async"));
  for (CUevent& event : staged_)
    ZRT_CHECK_OK(driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  return {};
}

CudaRing::~CudaRing() {
  if (context_ == nullptr) return;
  driver_.cuCtxSetCurrent(context_);
  if (stream_ != nullptr) driver_.cuStreamSynchronize(stream_);
  for (auto& [key, graph] : graphs_) driver_.cuGraphExecDestroy(graph.exec);
  for (auto& [name, module] : modules_) driver_.cuModuleUnload(module);
  for (const std::byte* memory : {words_, own_scratch_, device_staging_})
    if (memory != nullptr) driver_.cuMemFree(device_pointer(memory));
  for (std::byte* memory : {pinned_, staging_, read_back_})
    if (memory != nullptr) driver_.cuMemFreeHost(memory);
  for (CUevent event : staged_)
    if (event != nullptr) driver_.cuEventDestroy(event);
  if (stream_ != nullptr) driver_.cuStreamDestroy(stream_);
  memory_.clear();  // now, because freeing needs the context
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Result<Buffer> CudaRing::alloc_bo(std::uint64_t bytes, Heap heap) {
  ZRT_CHECK_OK(use_device());
  return memory_.alloc(bytes, heap, stream_);
}

Result<Buffer> CudaRing::import_bo(Ring& owner, const Buffer& buffer) {
  const auto* other = dynamic_cast<const CudaRing*>(&owner);
  // Rings of one device share its primary context, and so its addresses.
  if (other == nullptr || other->context_ != context_)
    return fail(StatusCode::kInvalidArgument, "[t_cuda] buffer object {} is of another device", buffer.id);
  return memory_.import(other->memory_, buffer);
}

Result<std::optional<DeviceMemory>> CudaRing::device_memory() const {
  ZRT_CHECK_OK(use_device());
  std::size_t free = 0, total = 0;
  ZRT_CHECK_OK(driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  return DeviceMemory{free > kReserveBytes ? free - kReserveBytes : 0, total};
}

void CudaRing::free_bo(const Buffer& buffer) {
  if (!use_device()) return;
  // Graphs may contain the freed address, so all are dropped. Those that are needed again are checked and rebuilt.
  if (!drop_graphs()) return;
  memory_.free(buffer);
}

Result<CUfunction> CudaRing::function(const std::string& image, const std::string& name) {
  const std::string key = image + "/" + name;
  if (const auto it = functions_.find(key); it != functions_.end()) return it->second;
  if (!modules_.contains(image)) {
    const auto found = std::ranges::find(cuda_images(), image, &CudaImage::name);
    if (found == cuda_images().end())
      return fail(StatusCode::kNotFound, "[t_cuda] no image of kernels is named {}", image);
    ZRT_TRY(const auto file, kernel::read_zrt(found->zrt));
    CUmodule module = nullptr;
    ZRT_CHECK_OK(driver_.check(driver_.cuModuleLoadData(&module, file.code.data()),
                               fmt::format("cuModuleLoadData of {}", image)));
    modules_[image] = module;
  }
  CUfunction function = nullptr;
  ZRT_CHECK_OK(driver_.check(driver_.cuModuleGetFunction(&function, modules_[image], name.c_str()),
                             fmt::format("cuModuleGetFunction of {}", key)));
  functions_[key] = function;
  return function;
}

Result<Kernel> CudaRing::load_kernel(std::span<const std::byte> zrt) {
  ZRT_TRY(auto loaded, read_kernel(zrt));
  kernels_.push_back(std::move(loaded));
  return Kernel{static_cast<std::uint32_t>(kernels_.size())};
}

Result<std::byte*> CudaRing::staging(std::uint64_t bytes) {
  if (staging_ == nullptr) {
    void* at = nullptr;
    ZRT_CHECK_OK(driver_.check(driver_.cuMemHostAlloc(&at, 2 * kStagingBytes, 0), "cuMemHostAlloc of staging memory"));
    staging_ = static_cast<std::byte*>(at);
    ZRT_TRY(device_staging_, alloc_device(driver_, 2 * kStagingBytes));
  }
  if (bytes > kStagingBytes)
    return fail(StatusCode::kInvalidArgument, "[t_cuda] {} bytes at once, {} can be staged", bytes, kStagingBytes);
  next_half_ = 1 - next_half_;
  ZRT_CHECK_OK(driver_.check(driver_.cuEventSynchronize(staged_[next_half_]), "an upload"));
  return staging_ + static_cast<std::uint64_t>(next_half_) * kStagingBytes;
}

Status CudaRing::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, to, offset, data.size()));
  std::byte* at = memory_.address(part);
  if (memory_.is_host(to.id)) {
    std::ranges::copy(data, at);
    return {};
  }
  ZRT_CHECK_OK(use_device());
  for (std::uint64_t done = 0; done < data.size();) {
    const std::uint64_t bytes = std::min<std::uint64_t>(kStagingBytes, data.size() - done);
    ZRT_TRY(std::byte * half, staging(bytes));
    std::memcpy(half, data.data() + done, bytes);
    ZRT_CHECK_OK(
        driver_.check(driver_.cuMemcpyHtoDAsync(device_pointer(at + done), half, bytes, stream_), "cuMemcpyHtoDAsync"));
    ZRT_CHECK_OK(driver_.check(driver_.cuEventRecord(staged_[next_half_], stream_), "cuEventRecord"));
    done += bytes;
  }
  return {};
}

Result<std::span<const std::byte>> CudaRing::read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, from, offset, bytes));
  const std::byte* at = memory_.address(part);
  if (memory_.is_host(from.id)) return std::span(at, bytes);
  ZRT_CHECK_OK(use_device());
  if (bytes > read_back_bytes_) {
    if (read_back_ != nullptr) driver_.cuMemFreeHost(read_back_);
    read_back_ = nullptr, read_back_bytes_ = 0;
    void* memory = nullptr;
    ZRT_CHECK_OK(driver_.check(driver_.cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc of memory to read back"));
    read_back_ = static_cast<std::byte*>(memory);
    read_back_bytes_ = bytes;
  }
  ZRT_CHECK_OK(
      driver_.check(driver_.cuMemcpyDtoHAsync(read_back_, device_pointer(at), bytes, stream_), "cuMemcpyDtoHAsync"));
  ZRT_CHECK_OK(driver_.check(driver_.cuStreamSynchronize(stream_), "reading back"));
  return std::span<const std::byte>(read_back_, bytes);
}

Status CudaRing::upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) {
  ZRT_TRY(const Binding part, gpu::part_of("t_cuda", memory_, to, offset, matrix));
  const std::uint64_t row = row_bytes(matrix.dtype, matrix.k);
  memory_.mark_weights(to.id);
  // Vectors keep the layout of the file. So do rows that no product reads, and rows after the last whole block of a
  // product.
  if (matrix.rows == 1 && traits(matrix.dtype).block_elems == 1) return write(to, offset, matrix.data);
  ZRT_CHECK_OK(use_device());
  ZRT_TRY(const CUfunction repack, function("linear." + std::string(to_string(matrix.dtype)), "repack"));
  const auto most_rows =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kStagingBytes / row / 16 * 16, matrix.rows));
  if (most_rows == 0)
    return fail(StatusCode::kUnavailable, "[t_cuda] rows of {} bytes, 16 of which exceed {} bytes", row, kStagingBytes);
  for (std::uint32_t first = 0; first < matrix.rows;) {
    const std::uint32_t rows = std::min(most_rows, matrix.rows - first);
    ZRT_TRY(std::byte * half, staging(rows * row));
    std::byte* device_half = device_staging_ + (half - staging_);
    std::memcpy(half, matrix.data.data() + first * row, rows * row);
    ZRT_CHECK_OK(driver_.check(driver_.cuMemcpyHtoDAsync(device_pointer(device_half), half, rows * row, stream_),
                               "cuMemcpyHtoDAsync"));
    cuda::RepackArgs args{device_half, memory_.address(part) + first * row, rows, matrix.k, matrix.rows};
    CUlaunchConfig config{};
    config.gridDimX = 1024;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream_;
    void* params[] = {&args};
    ZRT_CHECK_OK(driver_.check(driver_.cuLaunchKernelEx(&config, repack, params, nullptr), "repacking weights"));
    ZRT_CHECK_OK(driver_.check(driver_.cuEventRecord(staged_[next_half_], stream_), "cuEventRecord"));
    first += rows;
  }
  return {};
}

Status CudaRing::fits(const Submission& submission) const {
  ZRT_CHECK_OK(gpu::fits("t_cuda", submission, std::span<const LoadedKernel>(kernels_), memory_, cuda_joins().size()));
  return gpu::values_fit("t_cuda", submission, memory_);
}

namespace {

// Returns the number of rows for which a graph is built, so that it serves steps of n rows: the smallest power of two
// that is not below n.
std::uint32_t bucket_of(std::uint32_t n) {
  std::uint32_t bucket = 1;
  while (bucket < n) bucket *= 2;
  return bucket;
}

// Returns the class of history lengths for which a step is planned. Steps of few tokens spread the chunks of a history
// over workgroups. The plan has as many workgroups as the class's longest history has chunks, instead of as many as the
// cache has room for. There are few classes, because each needs its own graph. 0 means: histories as long as the cache
// has room for.
std::uint32_t positions_bucket(StepDims dims, const DeviceProfile::Attention& measured) {
  if (dims.n_positions == 0 || dims.n_tokens > measured.most_tokens_by_positions) return 0;
  std::uint64_t bucket = measured.least_positions;
  while (bucket < dims.n_positions) bucket *= 4;
  return bucket > measured.most_positions ? 0 : static_cast<std::uint32_t>(bucket);
}

}  // namespace

Result<Fence> CudaRing::submit(const Submission& submission) {
  ZRT_CHECK_OK(broken_);
  ZRT_CHECK_OK(use_device());
  if (submission.batch == nullptr) return std::unexpected(check_ranges(submission).error());
  // A step without tokens uses the bucket of two rows, because kernels of the bucket of one assume that there is a
  // token.
  const StepDims bucket{submission.dims.n_tokens == 0 ? 2 : bucket_of(submission.dims.n_tokens),
                        bucket_of(submission.dims.n_outputs), positions_bucket(submission.dims, profile_.attention)};
  const Key key{submission.batch->id.value(), submission.first, submission.count, bucket, submission.operand_set};
  auto it = graphs_.find(key);
  if (it == graphs_.end()) {
    ZRT_CHECK_OK(fits(submission));
    ZRT_TRY(const Graph graph, build(submission, bucket));
    it = graphs_.emplace(key, graph).first;
  }
  // The headers of steps are in a ring buffer. A new step must not overwrite the header of a step that has not ended.
  if (submissions_ >= cuda::kHeaders - 1) ZRT_CHECK_OK(wait_for(submissions_ + 2 - cuda::kHeaders));
  headers_[submissions_ % cuda::kHeaders] = {submission.dims.n_tokens, submission.dims.n_outputs};
  ZRT_CHECK_OK(driver_.check(driver_.cuGraphLaunch(it->second.exec, stream_), "cuGraphLaunch"));
  dispatches_ += it->second.n_dispatches;
  return Fence{++submissions_};
}

Status CudaRing::wait(Fence fence) {
  ZRT_CHECK_OK(check_fence("t_cuda", fence, submissions_));
  return wait_for(fence.value);
}

// The device writes the number of completed steps to host memory, which this function polls. Every 20 ms it asks the
// driver whether the device has had a fault.
Status CudaRing::wait_for(std::uint64_t submission) {
  ZRT_CHECK_OK(broken_);
  const auto is_done = [&] {
    const std::uint32_t done = done_->load(std::memory_order_acquire);
    return static_cast<std::int32_t>(done - static_cast<std::uint32_t>(submission)) >= 0;
  };
  return wait_until(is_done, [&](auto) -> Status {
    ZRT_CHECK_OK(use_device());
    const CUresult result = driver_.cuStreamQuery(stream_);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) broken_ = driver_.check(result, "a step");
    return broken_;
  });
}

Status CudaRing::use_operand_sets(const Buffer& buffer, std::uint64_t stride) {
  ZRT_CHECK_OK(use_device());
  if (!operand_sets_.add(buffer.id, stride))
    return fail(StatusCode::kInvalidArgument, "[t_cuda] buffer object {} is one too many with two sets", buffer.id);
  return drop_graphs();  // graphs hold the addresses of operands
}

RingStats CudaRing::stats() const {
  return {memory_.allocated_bytes(), memory_.imported_bytes(), submissions_, dispatches_};
}

}  // namespace zinc_rt::ring
