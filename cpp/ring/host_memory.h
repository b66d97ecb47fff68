// Buffer objects in host memory, for tiers whose memory is the host's.
// Thread rule: as Ring.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>

#include "ring/packet.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

class HostMemory {
 public:
  Result<Buffer> alloc(std::uint64_t bytes, Heap heap);
  Result<Buffer> import_host(std::span<const std::byte> memory);
  void free(const Buffer& buffer);
  Result<std::span<std::byte>> map(const Buffer& buffer) const;

  // The address of a binding; kInvalidArgument when it leaves its buffer. An absent binding gives null.
  Result<void*> resolve(const Binding& binding) const;

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
  };
  const Object* find(std::uint32_t id) const;

  std::unordered_map<std::uint32_t, Object> objects_;
  std::uint32_t next_id_ = 1;
  std::uint64_t allocated_ = 0, imported_ = 0;
};

}  // namespace zinc_rt::ring
