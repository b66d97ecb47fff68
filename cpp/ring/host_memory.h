// HostMemory holds the buffer objects of tiers that compute on the host, T-CPU and null.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ring/buffer_objects.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

struct HostObject {
  struct Free {
    std::uint64_t bytes;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> owned;  // the object's memory; null if it was imported
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  bool packed = false;
};

class HostMemory : public BufferObjects<HostObject> {
 public:
  HostMemory() : BufferObjects("ring") {}

  Result<Buffer> alloc(std::uint64_t bytes, Heap heap);
  Result<Buffer> import_host(std::span<const std::byte> memory);
  void free(const Buffer& buffer);
  Result<std::span<std::byte>> map(const Buffer& buffer) const;

  // Records that the object's quantized matrices are stored as row panels (kernels/cpu/quant/panels.h). Such an object
  // is written once and read often, so large pages are requested for it.
  void mark_packed(const Buffer& buffer);
  // Returns whether the object of a valid binding has row panels.
  bool is_packed(const Binding& binding) const { return binding.bo != 0 && at(binding.bo).packed; }
  // Returns the address of a valid binding; null if the binding is absent.
  void* address(const Binding& binding) const {
    return binding.bo == 0 ? nullptr : at(binding.bo).data + binding.offset;
  }

  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t imported_bytes() const { return imported_; }

 private:
  std::uint64_t allocated_ = 0, imported_ = 0;
};

}  // namespace zinc_rt::ring
