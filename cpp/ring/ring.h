// The contract of a hardware tier: what the executor asks of it, and nothing else.
// Thread rule: one thread at a time calls a ring; submitted work runs concurrently with it until its fence is waited
// for. All calls return errors as values; a device fault is an error of wait, never the end of the process.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernel/kernel_table.h"
#include "ring/fence.h"
#include "ring/packet.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// A matrix as a file has it: `rows` rows of k values.
struct WeightMatrix {
  DType dtype;
  std::uint32_t rows, k;
  std::span<const std::byte> data;
};

// Memory of a device's own, in bytes. free: for buffer objects of kDeviceLocal and kBar, what the ring needs beside
// them taken off.
struct DeviceMemory {
  std::uint64_t free = 0, total = 0;
};

struct RingStats {
  std::uint64_t allocated_bytes = 0;  // live buffer objects that the ring allocated (imports not counted)
  std::uint64_t imported_bytes = 0;
  std::uint64_t submissions = 0;
  std::uint64_t dispatches = 0;
};

class Ring {
 public:
  virtual ~Ring() = default;  // tear-down: waits for what is in flight, frees every buffer object and kernel

  // Queues the packets in order and returns at once. Packets without an edge between them may run in any order or side
  // by side.
  // Errors: kInvalidArgument when the submission names packets, buffers or kernels that do not exist.
  virtual Result<Fence> submit(const Submission& submission) = 0;
  // Blocks until the fence has retired; the error of a submission is given to its wait.
  virtual Status wait(Fence fence) = 0;
  // The host's view of a buffer object, the same until it is freed. Errors: kUnavailable for a heap that the host
  // cannot see.
  virtual Result<std::span<std::byte>> map(const Buffer& buffer) = 0;
  // Zeroed memory, aligned to 256 bytes. Errors: kExhausted with both numbers.
  virtual Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) = 0;
  // To and from buffer objects of any heap, also those that map does not show; nothing that uses them may be in flight.
  // What read gives is valid until the next call of read or submit. Errors: kInvalidArgument when it does not fit.
  virtual Status write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data);
  virtual Result<std::span<const std::byte>> read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes);
  virtual void free_bo(const Buffer& buffer) = 0;
  // Empty on tiers whose buffer objects lie in the host's memory, where pages are taken as they are written.
  virtual Result<std::optional<DeviceMemory>> device_memory() const { return std::nullopt; }
  // Memory of the device for what kernels leave to each other within one op: the bytes that the packets take in steps
  // of up to `most`, and the buffer object of kDeviceLocal for them, which is freed after the last submission. A ring
  // that was given none, or less than a submission takes, allocates it then. REQUIRES: the batch's kernels are loaded;
  // its bindings need not exist.
  virtual std::uint64_t scratch_bytes(const PacketBatch&, StepDims) const { return 0; }
  virtual Status use_scratch(const Buffer&) { return {}; }
  // Takes a specialized .zrt file (kernel/zrt_file.h) of the tier's target. Errors: kCorrupt, kUnavailable for another
  // target.
  virtual Result<Kernel> load_kernel(std::span<const std::byte> zrt) = 0;

  // Optional: uses host memory where it lies as a read-only buffer object, for tiers that compute on host memory. The
  // memory must outlive the buffer. Errors: kUnavailable on tiers with memory of their own, whose caller then allocates
  // and copies.
  virtual Result<Buffer> import_host(std::span<const std::byte> memory);

  // Whether this tier's kernels want weights in a form of its own, which upload writes; import_host gives plain ones.
  virtual bool repacks_weights() const { return false; }
  // Writes a matrix to a buffer object, in the form that the kernels read; it takes row_bytes * rows bytes in any form.
  // Matrices of one buffer object all come this way. Errors: kInvalidArgument when it does not fit.
  virtual Status upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix);

  virtual const kernel::KernelTable& kernels() const = 0;
  // Patterns of packets that this tier may carry out as one (lower/join.h says how they are written), the one that it
  // tries first in front. Lowering finds them and keeps alive what they need (PacketBatch::joined).
  virtual std::span<const std::string_view> joins() const { return {}; }
  virtual RingStats stats() const = 0;
  virtual std::string describe() const = 0;  // device and kernel set, for people
  // Whether kernels of arithmetic `fast` are in use: it was asked for, and the tier has some that run here.
  virtual bool is_fast() const { return false; }
};

}  // namespace zinc_rt::ring
