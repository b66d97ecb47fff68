// Ring is the interface of a hardware tier: all that an executor needs from a device. Each folder of ring/ implements
// it for one kind of device.
// Thread rule: one thread at a time calls a ring. Submitted work runs at the same time, until its fence is waited for.
// All calls return errors as values. A device fault is an error of wait(), never the end of the process.
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

// WeightMatrix is a matrix as a model file stores it: `rows` rows of k values of type dtype.
struct WeightMatrix {
  DType dtype;
  std::uint32_t rows, k;
  std::span<const std::byte> data;
};

// DeviceMemory tells how large a device's own memory is, in bytes. `free` is what buffer objects of kDeviceLocal and
// kBar may still take; the ring's own needs are already subtracted.
struct DeviceMemory {
  std::uint64_t free = 0, total = 0;
};

struct RingStats {
  std::uint64_t allocated_bytes = 0;  // bytes of live buffer objects that the ring allocated, without imports
  std::uint64_t imported_bytes = 0;
  std::uint64_t submissions = 0;
  std::uint64_t dispatches = 0;
};

class Ring {
 public:
  // The destructor waits for submitted work, then frees all buffer objects and kernels.
  virtual ~Ring() = default;

  // Queues the packets in order and returns at once. Packets without an edge between them may run in any order or at
  // the same time. A submission sees the writes of all earlier submissions. Errors: kInvalidArgument if it names
  // packets, buffers or kernels that do not exist.
  virtual Result<Fence> submit(const Submission& submission) = 0;
  // Blocks until the fence has retired. Errors: what failed in the fence's submission.
  virtual Status wait(Fence fence) = 0;
  // Returns a span through which the host accesses a buffer object. The span's address and size stay the same until the
  // object is freed. Errors: kUnavailable for a heap that the host cannot see.
  virtual Result<std::span<std::byte>> map(const Buffer& buffer) = 0;
  // Allocates zeroed memory, aligned to 256 bytes. Errors: kExhausted with both numbers.
  virtual Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) = 0;
  // Copy data to or from a buffer object of any heap, even of one that map() cannot show. No submitted work may use the
  // object meanwhile. What read() returns is valid until the next read() or submit(). Errors: kInvalidArgument if the
  // range exceeds the object.
  virtual Status write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data);
  virtual Result<std::span<const std::byte>> read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes);
  virtual void free_bo(const Buffer& buffer) = 0;
  // Returns how much memory the device has. Returns nullopt on tiers whose buffer objects are in host memory, because
  // the operating system allocates such memory page by page when it is first written.
  virtual Result<std::optional<DeviceMemory>> device_memory() const { return std::nullopt; }
  // Scratch is device memory in which the kernels of one op pass data to each other. scratch_bytes() returns how much
  // of it the packets need in steps of up to `most`. use_scratch() gives the ring a buffer object of kDeviceLocal for
  // it; free it after the last submission. A ring without enough scratch allocates the rest when it submits. REQUIRES:
  // the batch's kernels are loaded; its bindings need not exist.
  virtual std::uint64_t scratch_bytes(const PacketBatch&, StepDims) const { return 0; }
  virtual Status use_scratch(const Buffer&) { return {}; }
  // Optional, so that a step can be submitted while another one runs. use_operand_sets() says that `buffer` holds
  // operands twice, `stride` bytes apart. A submission then reads and writes the operands in `buffer` in the set that
  // Submission::operand_set names. Call it once per buffer object. Errors: kUnavailable if has_operand_sets() returns
  // false.
  virtual bool has_operand_sets() const { return false; }
  virtual Status use_operand_sets(const Buffer& buffer, std::uint64_t stride);
  // Loads a specialized .zrt file (kernel/zrt_file.h). Errors: kCorrupt; kUnavailable if it is for another target.
  virtual Result<Kernel> load_kernel(std::span<const std::byte> zrt) = 0;

  // Optional, for tiers that compute in host memory. Makes a read-only buffer object of existing memory, without a
  // copy. The memory must outlive the object. Errors: kUnavailable on tiers with device memory; the caller then
  // allocates and copies.
  virtual Result<Buffer> import_host(std::span<const std::byte> memory);
  // Optional. Makes a read-only buffer object of the memory of `buffer`, an object of `owner`, which is another ring of the
  // same tier on the same device. The owner's object must outlive this one. The rings do not wait for each other: the
  // caller waits for the fence of what wrote the memory before it submits what reads it. Errors: kUnavailable on tiers
  // that cannot do that.
  virtual Result<Buffer> import_bo(Ring& owner, const Buffer& buffer);

  // Returns whether this tier's kernels prefer their own layout of weights. upload() writes that layout; import_host()
  // keeps weights as they are.
  virtual bool repacks_weights() const { return false; }
  // Writes a matrix to a buffer object, in the layout that the kernels read. In any layout it takes row_bytes * rows
  // bytes. If one matrix of a buffer object is written by upload(), all of them must be. Errors: kInvalidArgument if
  // the matrix does not fit.
  virtual Status upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix);

  virtual const kernel::KernelTable& kernels() const = 0;
  // Patterns of packets that this tier may run as one, in the order in which it tries them (lower/join.h has their
  // syntax). Lowering finds the nodes that match and reports each match in PacketBatch::joined. The buffers that a
  // pattern names after `keep` are not reused for other values while the joined packet runs.
  virtual std::span<const std::string_view> joins() const { return {}; }
  virtual RingStats stats() const = 0;
  virtual std::string describe() const = 0;  // names device and kernel set, for display
  // Returns whether kernels of arithmetic `fast` are used: the user asked for them, and the tier has some that run
  // here.
  virtual bool is_fast() const { return false; }
};

}  // namespace zinc_rt::ring
