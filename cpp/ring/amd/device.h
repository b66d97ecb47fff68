// What the tiers of AMD GPUs ask of the kernel's driver: memory and a queue. ring/kfd is one; AmdRing does the rest.
// Thread rule: as Ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernel/zrt_file.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

class AmdDevice {
 public:
  // Where memory lies. The host sees all of it: that of the device through its window, the BAR.
  enum class Place : std::uint8_t {
    kDevice,
    kHost,  // of the host, which device and host see without caches between them
  };
  struct Memory {
    std::byte* host = nullptr;
    std::uint64_t va = 0;  // on the device
    std::uint64_t bytes = 0, handle = 0;
  };
  // A word of 64 bits that both the device and the host see.
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint64_t));
  // A queue's ring of dwords and its words. rptr and wptr count dwords and never wrap.
  struct Queue {
    std::span<std::uint32_t> ring;
    Word *rptr = nullptr, *wptr = nullptr, *doorbell = nullptr;
  };

  virtual ~AmdDevice() = default;
  // Of whole pages, with anything in it. Errors: kExhausted with both numbers.
  virtual Result<Memory> alloc(std::uint64_t bytes, Place place) = 0;
  virtual void free(const Memory& memory) = 0;
  virtual Result<DeviceMemory> memory() const = 0;
  // The one queue of this device object; closed with it.
  virtual Result<Queue> open_queue() = 0;
  // Whether the kernel knows of a fault. Errors: kInternal with what it says.
  virtual Status check() = 0;
  virtual kernel::Target target() const = 0;  // whose code it runs
  virtual std::string describe() const = 0;   // for people
};

}  // namespace zinc_rt::ring
