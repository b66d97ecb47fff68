// PacketBatch is the work for a ring: kernel dispatches over buffer objects, with what each reads, writes and waits
// for. Lowering builds one batch per model and stage. StepDims holds the few numbers that change from step to step. A
// batch does not depend on the tier; each tier turns it into its own device packets.
// Thread rule: immutable after lowering; the ring only reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "ir/graph.h"
#include "kernel/slots.h"
#include "ring/fence.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// Buffer names a buffer object of a ring. Ring::alloc_bo or Ring::import_host creates it.
struct Buffer {
  std::uint32_t id = 0;  // 0 = none
  std::uint64_t bytes = 0;
  Heap heap = Heap::kDeviceLocal;
};

// Kernel names a kernel that Ring::load_kernel has loaded.
struct Kernel {
  std::uint32_t id = 0;  // 0 = none
};

// ValueId identifies a value: the content of memory from one write to the next. One packet writes the value, and other
// packets read it. A buffer that is updated in place holds one value before the update and another value after it.
using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

struct Binding {
  std::uint32_t bo = 0;  // 0: the optional operand is absent
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  ValueId value = kNoValue;  // index in PacketBatch::values; kNoValue: the operand is absent
};

// StepDims holds the numbers of a step that the graph leaves open.
struct StepDims {
  std::uint32_t n_tokens = 0;   // query tokens of the step
  std::uint32_t n_outputs = 0;  // output rows of the step, that is, rows whose logits or embeddings are computed
  // Length of the longest history, including the step's tokens; 0: unknown. Kernels choose launches by it, but no
  // result depends on it.
  std::uint32_t n_positions = 0;
  bool operator==(const StepDims&) const = default;
};

// GridExtent computes how many workgroups run along an axis: ceil(extent / tile). The extent is a constant or one of
// the step's numbers.
struct GridExtent {
  ir::Dim extent{1};
  std::uint32_t tile = 1;
  std::uint32_t count(const StepDims& dims) const;
};

// Packet is one dispatch of a kernel, with its operands and constants.
struct Packet {
  ir::Op op = ir::Op::BARRIER;
  std::int32_t layer = -1;
  Kernel kernel;
  GridExtent grid[3];
  // Range in PacketBatch::bindings: first n_inputs operands that the kernel reads, then the operands that it writes.
  std::uint32_t first_binding = 0, n_bindings = 0;
  std::uint32_t n_inputs = 0;
  std::uint32_t first_push = 0, push_bytes = 0;  // range in PacketBatch::push
};

// Value says where the bytes of a value are, and how long they are needed.
struct Value {
  Binding at;
  std::uint32_t last_use = 0;  // the last packet that reads the value; if none reads it, the packet that writes it
};

// An Edge says that packet `to` waits for packet `from`, because both access the same bytes and at least one of them
// writes.
struct Edge {
  std::uint32_t from = 0, to = 0;
  std::uint32_t bo = 0;
  std::uint64_t offset = 0, bytes = 0;
};

// The `count` packets from `first` on match one of the tier's patterns (Ring::joins). The tier may run all of them as
// one, or only the first few, but at least `least`. Memory that the pattern protects by `keep` (lower/join.h) shares no
// bytes with memory that these packets write.
struct Joined {
  std::uint32_t pattern = 0, first = 0, least = 0, count = 0;
};

// Identifies the content of a batch while the process runs. A ring uses it as the key of what it has computed for a
// batch (plans, graphs), so that it need not compare contents. A copy of a batch gets a new identity, because the copy
// may be changed.
class BatchId {
 public:
  BatchId() : value_(next()) {}
  BatchId(const BatchId&) : BatchId() {}
  BatchId(BatchId&& other) noexcept : value_(std::exchange(other.value_, next())) {}
  BatchId& operator=(const BatchId&) {
    value_ = next();
    return *this;
  }
  BatchId& operator=(BatchId&& other) noexcept {
    value_ = std::exchange(other.value_, next());
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  static std::uint64_t next();
  std::uint64_t value_;
};

struct PacketBatch {
  BatchId id;
  std::string name;
  std::vector<Packet> packets;
  std::vector<Binding> bindings;
  std::vector<std::byte> push;
  std::vector<Value> values;
  std::vector<Edge> edges;     // sorted by `to`; an edge that follows from other edges is not listed
  std::vector<Joined> joined;  // sorted by `first`, then by the order of the patterns
  // After which packets a run may stop. layer_end[i] is the number of packets up to the end of layer i. body_end is the
  // number of packets before the output rows are gathered. A step may run [0, body_end) once and [body_end, end)
  // several times, for groups of output rows.
  std::vector<std::uint32_t> layer_end;
  std::uint32_t body_end = 0;
};

// Submission is the argument of Ring::submit: a part of a batch, and the numbers of the step.
struct Submission {
  const PacketBatch* batch = nullptr;  // must live until the fence is waited for
  std::uint32_t first = 0, count = 0;  // a range of packets
  StepDims dims;
  std::uint32_t operand_set = 0;  // 0 or 1: where the operands are (Ring::use_operand_sets)
};

// Computes the batch's values and edges from its packets and bindings.
void find_dependencies(PacketBatch& batch);

// Tells a tier that orders packets by barriers where they must be. Element i is true if a barrier must come before
// packet i. This is so if packet i waits for a packet that comes after the previous barrier, and for packet body_end,
// because [body_end, end) may be submitted by itself.
std::vector<bool> barriers(const PacketBatch& batch);

// Checks that the numbers of a submission fit its batch. Every tier calls this first. Errors: kInvalidArgument.
Status check_ranges(const Submission& submission);
// Checks that the ring has returned this fence from submit(), so that its number is between 1 and n_given. `tier`
// begins error messages. Errors: kInvalidArgument.
Status check_fence(std::string_view tier, Fence fence, std::uint64_t n_given);
// Checks that a packet's kernel is loaded and accepts the packet's operands. `kernel` is the loaded kernel with the
// packet's id, or null if no kernel has this id; n_loaded is the number of loaded kernels. `tier` begins error
// messages. Errors: kInvalidArgument.
Status check_kernel(std::string_view tier, const Packet& packet, const kernel::SlotKernel* kernel,
                    std::size_t n_loaded);

}  // namespace zinc_rt::ring
