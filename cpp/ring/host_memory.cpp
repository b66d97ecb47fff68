#include "ring/host_memory.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/platform/machine_memory.h"

namespace zinc_rt::ring {

void HostObject::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, bytes);
}

// The kernel provides zeroed pages, and a page takes physical memory only once it is touched.
Result<Buffer> HostMemory::alloc(std::uint64_t bytes, Heap heap) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[ring] a buffer object of 0 bytes");
  // The kernel does not count pages that are only reserved. So a plan that cannot fit is refused here, before it is
  // used.
  const std::uint64_t machine = machine_memory_bytes();
  if (bytes > machine || allocated_ > machine - bytes)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes, {} in use of the machine's {}", bytes,
                allocated_, machine);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes of host memory, {} in use", bytes, allocated_);
  allocated_ += bytes;
  return add({{static_cast<std::byte*>(memory), HostObject::Unmap{bytes}}, static_cast<std::byte*>(memory), bytes},
             heap);
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
  // Large pages are faster. The call is only a hint to the kernel, so its result is ignored.
  if (object.owned) ::madvise(object.data, object.bytes, MADV_HUGEPAGE);
}

}  // namespace zinc_rt::ring
