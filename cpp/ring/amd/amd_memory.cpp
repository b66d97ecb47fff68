#include "ring/amd/amd_memory.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {

Result<Buffer> AmdMemory::alloc(std::uint64_t bytes, Heap heap) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[amd] a buffer object of 0 bytes");
  const auto place =
      heap == Heap::kHostVisible && bytes > kMostInTheWindow ? AmdDevice::Place::kHost : AmdDevice::Place::kDevice;
  ZRT_TRY(const auto memory, device_.alloc(bytes, place));
  std::memset(memory.host, 0, memory.bytes);
  objects_.push_back({memory, bytes, heap, place});
  allocated_ += bytes;
  return Buffer{static_cast<std::uint32_t>(objects_.size()), bytes, heap};
}

void AmdMemory::free(const Buffer& buffer) {
  if (find(buffer.id) == nullptr) return;
  Object& object = objects_[buffer.id - 1];
  device_.free(object.memory);
  allocated_ -= object.bytes;
  object = {};
}

void AmdMemory::clear() {
  for (const Object& object : objects_)
    if (object.bytes != 0) device_.free(object.memory);
  objects_.clear();
  allocated_ = 0;
}

Result<std::span<std::byte>> AmdMemory::map(const Buffer& buffer) const {
  const Object* object = find(buffer.id);
  if (object == nullptr) return fail(StatusCode::kInvalidArgument, "[amd] buffer object {} does not exist", buffer.id);
  if (object->heap == Heap::kDeviceLocal)
    return fail(StatusCode::kUnavailable, "[amd] buffer object {} is memory of the device: write and read copy",
                buffer.id);
  return std::span(object->memory.host, object->bytes);
}

std::unexpected<Error> AmdMemory::refuse(const Binding& binding) const {
  const Object* object = find(binding.bo);
  if (object == nullptr) return fail(StatusCode::kInvalidArgument, "[amd] buffer object {} does not exist", binding.bo);
  return fail(StatusCode::kInvalidArgument, "[amd] a binding of {} bytes at {} leaves buffer object {} of {} bytes",
              binding.bytes, binding.offset, binding.bo, object->bytes);
}

}  // namespace zinc_rt::ring
