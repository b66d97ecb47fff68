// AmdMemory holds a ring's buffer objects on an AMD GPU.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include "ring/amd/device.h"
#include "ring/buffer_objects.h"

namespace zinc_rt::ring {

struct AmdObject {
  AmdDevice::Memory memory;
  std::uint64_t bytes = 0;  // the requested size, without rounding to pages
  Heap heap = Heap::kDeviceLocal;
  AmdDevice::Domain domain = AmdDevice::Domain::kDevice;
};

// Small objects that the host sees are placed in device memory, which the host writes through the device's window
// (BAR). The host writes the step's descriptor, slots and page tables once per step, but every wave of the GPU reads
// them.
class AmdMemory : public BufferObjects<AmdObject> {
 public:
  static constexpr std::uint64_t kMostInTheWindow = 16 << 20;

  explicit AmdMemory(AmdDevice& device) : BufferObjects("amd"), device_(device) {}
  ~AmdMemory() { clear(); }

  Result<Buffer> alloc(std::uint64_t bytes, Heap heap);
  void free(const Buffer& buffer);
  void clear();
  Result<std::span<std::byte>> map(const Buffer& buffer) const;
  // Returns the device address of a valid binding; 0 for an absent one.
  std::uint64_t address(const Binding& binding) const {
    return binding.bo == 0 ? 0 : at(binding.bo).memory.va + binding.offset;
  }
  // Returns the host's address of a valid binding, which lies in the device's window.
  std::byte* host(const Binding& binding) const { return at(binding.bo).memory.host + binding.offset; }
  // Calls see(id, memory, domain) for each live object.
  template <class See>
  void for_each(const See& see) const {
    for (std::uint32_t id = 1; id <= last_id(); ++id)
      if (const AmdObject* object = find(id)) see(id, object->memory, object->domain);
  }
  std::uint64_t allocated_bytes() const { return allocated_; }

 private:
  AmdDevice& device_;
  std::uint64_t allocated_ = 0;
};

}  // namespace zinc_rt::ring
