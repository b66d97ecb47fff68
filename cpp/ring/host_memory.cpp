#include "ring/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::ring {

void HostMemory::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, bytes);
}

namespace {

// What the machine has. Pages that are only reserved are not counted against it by the kernel, so a plan that cannot
// fit is refused here and not when it is used.
std::uint64_t machine_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PHYS_PAGES))) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace

// Pages come zeroed from the kernel and count as resident only once touched.
Result<Buffer> HostMemory::alloc(std::uint64_t bytes, Heap heap) {
  if (bytes == 0) return fail(StatusCode::kInvalidArgument, "[ring] a buffer object of 0 bytes");
  if (bytes > machine_bytes() || allocated_ > machine_bytes() - bytes)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes, {} in use of the machine's {}", bytes,
                allocated_, machine_bytes());
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(StatusCode::kExhausted, "[ring] cannot allocate {} bytes of host memory, {} in use", bytes, allocated_);
  Object object{{static_cast<std::byte*>(memory), Unmap{bytes}}, static_cast<std::byte*>(memory), bytes};
  allocated_ += bytes;
  const Buffer buffer{next_id_++, bytes, heap};
  objects_.emplace(buffer.id, std::move(object));
  return buffer;
}

Result<Buffer> HostMemory::import_host(std::span<const std::byte> memory) {
  if (memory.empty()) return fail(StatusCode::kInvalidArgument, "[ring] an import of 0 bytes");
  const Buffer buffer{next_id_++, memory.size(), Heap::kHostVisible};
  objects_.emplace(buffer.id, Object{{}, const_cast<std::byte*>(memory.data()), memory.size()});
  imported_ += memory.size();
  return buffer;
}

void HostMemory::free(const Buffer& buffer) {
  const auto it = objects_.find(buffer.id);
  if (it == objects_.end()) return;
  (it->second.owned ? allocated_ : imported_) -= it->second.bytes;
  objects_.erase(it);
}

const HostMemory::Object* HostMemory::find(std::uint32_t id) const {
  const auto it = objects_.find(id);
  return it == objects_.end() ? nullptr : &it->second;
}

Result<std::span<std::byte>> HostMemory::map(const Buffer& buffer) const {
  const Object* object = find(buffer.id);
  if (object == nullptr) return fail(StatusCode::kInvalidArgument, "[ring] buffer object {} does not exist", buffer.id);
  if (!object->owned)
    return fail(StatusCode::kUnavailable, "[ring] buffer object {} is imported memory and read only", buffer.id);
  return std::span(object->data, object->bytes);
}

Result<void*> HostMemory::resolve(const Binding& binding) const {
  if (binding.bo == 0) return nullptr;
  const Object* object = find(binding.bo);
  if (object == nullptr)
    return fail(StatusCode::kInvalidArgument, "[ring] buffer object {} does not exist", binding.bo);
  if (binding.offset > object->bytes || binding.bytes > object->bytes - binding.offset)
    return fail(StatusCode::kInvalidArgument, "[ring] a binding of {} bytes at {} leaves buffer object {} of {} bytes",
                binding.bytes, binding.offset, binding.bo, object->bytes);
  return object->data + binding.offset;
}

}  // namespace zinc_rt::ring
