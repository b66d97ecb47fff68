#include "ring/cuda/cuda_memory.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

CUdeviceptr device_pointer(const std::byte* at) {
  return reinterpret_cast<CUdeviceptr>(at);
}

}  // namespace

Result<std::byte*> alloc_device(const Driver& driver, std::uint64_t bytes) {
  std::size_t free = 0, total = 0;
  ZRT_CHECK_OK(driver.check(driver.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  CUdeviceptr at = 0;
  if (bytes > total || driver.cuMemAlloc(&at, bytes) != CUDA_SUCCESS)
    return fail(
        StatusCode::kExhausted,
        "[t_cuda] cannot allocate {} bytes of device memory, {} of {} are free; fewer slots (max_slots), a shorter "
        "context (max_context) or fewer pages (kv_pages) take less",
        bytes, free, total);
  return reinterpret_cast<std::byte*>(at);
}

void CudaMemory::clear() {
  for (std::uint32_t id = 1; id <= last_id(); ++id) free({.id = id});
}

Result<Buffer> CudaMemory::alloc(std::uint64_t bytes, Heap heap, CUstream stream) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[t_cuda] a buffer object of 0 bytes");
  CudaObject object;
  object.bytes = bytes;
  object.is_host = heap != Heap::kDeviceLocal;
  if (object.is_host) {
    void* at = nullptr;
    if (driver_.cuMemHostAlloc(&at, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
      return fail(StatusCode::kExhausted, "[t_cuda] cannot allocate {} bytes of pinned host memory, {} in use", bytes,
                  allocated_);
    std::memset(at, 0, bytes);
    object.data = static_cast<std::byte*>(at);
  } else {
    ZRT_TRY(object.data, alloc_device(driver_, bytes));
    const auto cleared = driver_.cuMemsetD8Async(device_pointer(object.data), 0, bytes, stream);
    if (const auto status = driver_.check(cleared, "cuMemsetD8Async"); !status) {
      driver_.cuMemFree(device_pointer(object.data));
      return std::unexpected(status.error());
    }
  }
  allocated_ += bytes;
  return add(object, heap);
}

Result<Buffer> CudaMemory::import(const CudaMemory& owner, const Buffer& buffer) {
  const CudaObject* theirs = owner.find(buffer.id);
  if (theirs == nullptr) return owner.does_not_exist(buffer.id);
  CudaObject object = *theirs;
  object.is_import = true;
  imported_ += object.bytes;
  return add(object, buffer.heap);
}

void CudaMemory::free(const Buffer& buffer) {
  CudaObject* object = find(buffer.id);
  if (object == nullptr) return;
  (object->is_import ? imported_ : allocated_) -= object->bytes;
  if (object->is_host && !object->is_import) driver_.cuMemFreeHost(object->data);
  if (!object->is_host && !object->is_import) driver_.cuMemFree(device_pointer(object->data));
  std::erase_if(shadows_, [&](const auto& entry) {
    if (std::get<0>(entry.first) != buffer.id) return false;
    driver_.cuMemFree(device_pointer(entry.second));
    return true;
  });
  *object = {};
}

Result<std::span<std::byte>> CudaMemory::map(const Buffer& buffer) const {
  const CudaObject* object = find(buffer.id);
  if (object == nullptr) return does_not_exist(buffer.id);
  if (!object->is_host)
    return fail(StatusCode::kUnavailable, "[t_cuda] buffer object {} lies in device memory, which the host cannot see",
                buffer.id);
  return std::span(object->data, object->bytes);
}

Result<std::byte*> CudaMemory::shadow(const Binding& binding) {
  const std::tuple key{binding.bo, binding.offset, binding.bytes};
  if (const auto it = shadows_.find(key); it != shadows_.end()) return it->second;
  ZRT_TRY(std::byte * copy, alloc_device(driver_, binding.bytes));
  return shadows_[key] = copy;
}

}  // namespace zinc_rt::ring
