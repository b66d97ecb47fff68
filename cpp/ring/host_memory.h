// Buffer objects in host memory, for tiers whose memory is the host's.
// Thread rule: as Ring.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ring/packet.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

class HostMemory {
 public:
  Result<Buffer> alloc(std::uint64_t bytes, Heap heap);
  Result<Buffer> import_host(std::span<const std::byte> memory);
  void free(const Buffer& buffer);
  Result<std::span<std::byte>> map(const Buffer& buffer) const;

  // Whether a binding lies in its buffer object or is absent. Where it is neither, refuse() makes the error:
  // kInvalidArgument.
  bool holds(const Binding& binding) const {
    if (binding.bo == 0) return true;
    const Object* object = find(binding.bo);
    return object != nullptr && binding.offset <= object->bytes && binding.bytes <= object->bytes - binding.offset;
  }
  std::unexpected<Error> refuse(const Binding& binding) const;
  // Notes that the quantized matrices of the object lie in row panels (kernels/cpu/quant/panels.h). Such an object is
  // written once and read often, so large pages are asked for.
  void mark_packed(const Buffer& buffer);
  // Whether the object of a valid binding is one of those.
  bool is_packed(const Binding& binding) const { return binding.bo != 0 && objects_[binding.bo - 1].packed; }
  // The address of a valid binding; null for an absent one.
  void* address(const Binding& binding) const {
    return binding.bo == 0 ? nullptr : objects_[binding.bo - 1].data + binding.offset;
  }

  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t imported_bytes() const { return imported_; }

 private:
  struct Unmap {
    std::uint64_t bytes;
    void operator()(std::byte* memory) const;
  };
  struct Object {
    std::unique_ptr<std::byte, Unmap> owned;  // null: imported
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    bool packed = false;
  };
  Buffer add(Object object, Heap heap);
  const Object* find(std::uint32_t id) const {
    return id - 1 < objects_.size() && objects_[id - 1].data != nullptr ? &objects_[id - 1] : nullptr;
  }

  // Indexed by id - 1, so that each binding of a submission is resolved by one index. A freed object stays as an empty
  // entry, and its id is not given out again.
  std::vector<Object> objects_;
  std::uint64_t allocated_ = 0, imported_ = 0;
};

}  // namespace zinc_rt::ring
