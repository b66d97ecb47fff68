#include "ring/amd/amd_memory.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {

Result<Buffer> AmdMemory::alloc(std::uint64_t bytes, Heap heap) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[amd] a buffer object of 0 bytes");
  const auto domain =
      heap == Heap::kHostVisible && bytes > kMostInTheWindow ? AmdDevice::Domain::kHost : AmdDevice::Domain::kDevice;
  ZRT_TRY(const auto memory, device_.alloc(bytes, domain));
  std::memset(memory.host, 0, memory.bytes);
  allocated_ += bytes;
  return add({memory, bytes, heap, domain}, heap);
}

void AmdMemory::free(const Buffer& buffer) {
  AmdObject* object = find(buffer.id);
  if (object == nullptr) return;
  device_.free(object->memory);
  allocated_ -= object->bytes;
  *object = {};
}

void AmdMemory::clear() {
  for (std::uint32_t id = 1; id <= last_id(); ++id) free({.id = id});
}

Result<std::span<std::byte>> AmdMemory::map(const Buffer& buffer) const {
  const AmdObject* object = find(buffer.id);
  if (object == nullptr) return does_not_exist(buffer.id);
  if (object->heap == Heap::kDeviceLocal)
    return fail(StatusCode::kUnavailable, "[amd] buffer object {} is memory of the device: write and read copy",
                buffer.id);
  return std::span(object->memory.host, object->bytes);
}

}  // namespace zinc_rt::ring
