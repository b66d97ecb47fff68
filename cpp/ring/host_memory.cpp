#include "ring/host_memory.h"

#include "base/error.h"
#include "base/platform/host_pages.h"
#include "base/platform/machine_memory.h"

namespace zinc_rt::ring {

void HostObject::Free::operator()(std::byte* memory) const {
  free_pages(memory, bytes);
}

Result<Buffer> HostMemory::alloc(std::uint64_t bytes, Heap heap) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[ring] a buffer object of 0 bytes");
  // The kernel does not count pages that are only reserved. So a plan that cannot fit is refused here, before it is
  // used.
  const std::uint64_t machine = machine_memory_bytes();
  if (bytes > machine || allocated_ > machine - bytes)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes, {} in use of the machine's {}", bytes,
                allocated_, machine);
  std::byte* memory = allocate_pages(bytes);
  if (memory == nullptr)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes of host memory, {} in use", bytes, allocated_);
  allocated_ += bytes;
  return add({{memory, HostObject::Free{bytes}}, memory, bytes}, heap);
}

Result<Buffer> HostMemory::import_host(std::span<const std::byte> memory) {
  if (memory.empty()) return fail(StatusCode::kInvalidArgument, "[ring] an import of 0 bytes");
  imported_ += memory.size();
  return add({{}, const_cast<std::byte*>(memory.data()), memory.size()}, Heap::kHostVisible);
}

void HostMemory::free(const Buffer& buffer) {
  HostObject* object = find(buffer.id);
  if (object == nullptr) return;
  (object->owned ? allocated_ : imported_) -= object->bytes;
  *object = {};
}

Result<std::span<std::byte>> HostMemory::map(const Buffer& buffer) const {
  const HostObject* object = find(buffer.id);
  if (object == nullptr) return does_not_exist(buffer.id);
  if (!object->owned)
    return fail(StatusCode::kUnavailable, "[ring] buffer object {} is imported memory and read only", buffer.id);
  return std::span(object->data, object->bytes);
}

void HostMemory::mark_packed(const Buffer& buffer) {
  HostObject& object = at(buffer.id);
  if (object.packed) return;
  object.packed = true;
  if (object.owned) prefer_large_pages(object.data, object.bytes);
}

}  // namespace zinc_rt::ring
