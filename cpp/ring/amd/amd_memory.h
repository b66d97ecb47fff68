// Buffer objects on an AMD GPU.
// Thread rule: as Ring.
#pragma once

#include <vector>

#include "ring/amd/device.h"
#include "ring/packet.h"

namespace zinc_rt::ring {

// Small objects that the host sees lie on the device, behind its window: the host writes the step's descriptor, slots and
// page tables once, and every wave reads them.
class AmdMemory {
 public:
  static constexpr std::uint64_t kMostInTheWindow = 16 << 20;

  explicit AmdMemory(AmdDevice& device) : device_(device) {}
  ~AmdMemory() { clear(); }

  Result<Buffer> alloc(std::uint64_t bytes, Heap heap);
  void free(const Buffer& buffer);
  void clear();
  Result<std::span<std::byte>> map(const Buffer& buffer) const;
  // Whether a binding lies in its buffer object or is absent. Where it is neither, refuse() makes the error:
  // kInvalidArgument.
  bool holds(const Binding& binding) const {
    if (binding.bo == 0) return true;
    const Object* object = find(binding.bo);
    return object != nullptr && binding.offset <= object->bytes && binding.bytes <= object->bytes - binding.offset;
  }
  std::unexpected<Error> refuse(const Binding& binding) const;
  // Of a valid binding; 0 and null for an absent one.
  std::uint64_t address(const Binding& binding) const {
    return binding.bo == 0 ? 0 : objects_[binding.bo - 1].memory.va + binding.offset;
  }
  // Through the window, in memory of the device.
  std::byte* host(const Binding& binding) const { return objects_[binding.bo - 1].memory.host + binding.offset; }
  // Calls see(id, memory, place) for each live object.
  template <class See>
  void for_each(const See& see) const {
    for (std::size_t i = 0; i < objects_.size(); ++i)
      if (objects_[i].bytes != 0) see(i + 1, objects_[i].memory, objects_[i].place);
  }
  std::uint64_t allocated_bytes() const { return allocated_; }

 private:
  struct Object {
    AmdDevice::Memory memory;
    std::uint64_t bytes = 0;  // that were asked for; 0: freed
    Heap heap = Heap::kDeviceLocal;
    AmdDevice::Place place = AmdDevice::Place::kDevice;
  };
  const Object* find(std::uint32_t id) const {
    return id - 1 < objects_.size() && objects_[id - 1].bytes != 0 ? &objects_[id - 1] : nullptr;
  }

  AmdDevice& device_;
  std::vector<Object> objects_;  // id - 1
  std::uint64_t allocated_ = 0;
};

}  // namespace zinc_rt::ring
