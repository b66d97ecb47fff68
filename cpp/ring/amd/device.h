// AmdDevice is what the AMD tiers need from a kernel driver: memory, and a path that runs packets. ring/kfd and
// ring/umq implement it; AmdRing does the rest.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernel/zrt_file.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

// PacketPath is a queue of the device, which runs buffers of packets one after another.
class PacketPath {
 public:
  virtual ~PacketPath() = default;
  // Returns whether one more buffer fits into the queue. Space becomes free when the device has run earlier buffers.
  virtual bool has_space() const = 0;
  // Makes the device run the `n_dwords` of packets at address `at`, after everything that was submitted earlier.
  // REQUIRES: has_space(). Errors: those of the driver.
  virtual Status submit(std::uint64_t at, std::uint32_t n_dwords) = 0;
  virtual std::string state() const = 0;  // the queue's progress, for error messages
};

// HostWrites tells how the device is made to see what the host wrote through the window (BAR).
enum class HostWrites : std::uint8_t {
  kRegisters,  // a packet writes a register to request the flush and waits for another register
  kPacket,     // a special packet, for queues whose packets may not name registers
  kDriver,     // no packet: the driver flushes with each submission
};

class AmdDevice {
 public:
  // Domain tells in which memory an allocation lies. The host sees both kinds: the device's memory through the device's
  // window, the BAR.
  enum class Domain : std::uint8_t {
    kDevice,
    kHost,  // host memory; device and host see each other's writes without flushes of caches
  };
  struct Memory {
    std::byte* host = nullptr;
    std::uint64_t va = 0;  // address on the device
    std::uint64_t bytes = 0, handle = 0;
  };
  // Word is a 64-bit word that both the device and the host access, such as a fence.
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint64_t));
  virtual ~AmdDevice() = default;
  // Allocates whole pages with undefined contents. Errors: kExhausted with both numbers.
  virtual Result<Memory> alloc(std::uint64_t bytes, Domain domain) = 0;
  virtual void free(const Memory& memory) = 0;
  virtual Result<DeviceMemory> memory() const = 0;
  // Opens the device's only path. It must be destroyed before the device object.
  virtual Result<std::unique_ptr<PacketPath>> open_path() = 0;
  virtual HostWrites host_writes() const = 0;
  // Returns an error if the device has had a fault. Errors: kInternal with the kernel's report.
  virtual Status check() = 0;
  virtual kernel::Target target() const = 0;  // target (instruction set) whose code the device runs
  virtual std::string describe() const = 0;   // for display
};

}  // namespace zinc_rt::ring
