// Checks that the ring of a GPU tier makes before it plans a submission or accepts a matrix.
// Thread rule: plain functions.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "ring/packet.h"
#include "ring/ring.h"

namespace zinc_rt::ring::gpu {

// Checks that a submission can be planned. The submission's numbers must fit its batch. The kernels of its packets must
// be loaded (kernels[id - 1]) and accept the packets' operands. Its bindings must lie in `memory`. The pattern numbers
// of its joins must be below n_joins. `tier` begins error messages. Errors: kInvalidArgument.
template <class Kernel, class Memory>
Status fits(std::string_view tier, const Submission& submission, std::span<const Kernel> kernels, const Memory& memory,
            std::size_t n_joins) {
  ZRT_CHECK_OK(check_ranges(submission));
  const PacketBatch& batch = *submission.batch;
  for (const Packet& packet : std::span(batch.packets).subspan(submission.first, submission.count)) {
    const std::size_t at = packet.kernel.id - 1;
    ZRT_CHECK_OK(check_kernel(tier, packet, at < kernels.size() ? &kernels[at] : nullptr, kernels.size()));
    for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
      if (!memory.holds(binding)) return memory.refuse(binding);
  }
  for (const Joined& joined : batch.joined)
    if (joined.pattern >= n_joins)
      return fail(StatusCode::kInvalidArgument, "[{}] packets that match pattern {} of {}", tier, joined.pattern,
                  n_joins);
  return {};
}

// For tiers whose plans refer to values: checks that each binding of a submission is a value of its batch and that all
// values are in `memory`. REQUIRES: fits() returned no error. Errors: kInvalidArgument.
template <class Memory>
Status values_fit(std::string_view tier, const Submission& submission, const Memory& memory) {
  const PacketBatch& batch = *submission.batch;
  for (const Packet& packet : std::span(batch.packets).subspan(submission.first, submission.count))
    for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
      if (binding.bo != 0 && binding.value >= batch.values.size())
        return fail(StatusCode::kInvalidArgument, "[{}] {} binds value {}, the batch has {}", tier,
                    to_string(packet.op), binding.value, batch.values.size());
  for (const Value& value : batch.values)
    if (!memory.holds(value.at)) return memory.refuse(value.at);
  return {};
}

// Returns the range of a buffer object that the host copies to or from. Errors: kInvalidArgument if it exceeds the
// object.
template <class Memory>
Result<Binding> part_of(const Memory& memory, const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  const Binding binding{buffer.id, offset, bytes};
  if (buffer.id == 0 || !memory.holds(binding)) return memory.refuse(binding);
  return binding;
}

// Returns the range that a matrix takes. Errors: kInvalidArgument if its data has another length, or if the range
// exceeds the object.
template <class Memory>
Result<Binding> part_of(std::string_view tier, const Memory& memory, const Buffer& to, std::uint64_t offset,
                        const WeightMatrix& matrix) {
  const std::uint64_t bytes = row_bytes(matrix.dtype, matrix.k) * matrix.rows;
  if (matrix.data.size() != bytes)
    return fail(StatusCode::kInvalidArgument, "[{}] a matrix of {} bytes, {} given", tier, bytes, matrix.data.size());
  return part_of(memory, to, offset, bytes);
}

}  // namespace zinc_rt::ring::gpu
