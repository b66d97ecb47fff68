#include "ring/packet.h"

#include <atomic>

#include "base/error.h"

namespace zinc_rt::ring {

std::uint64_t BatchId::next() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::uint32_t GridExtent::count(const StepDims& dims) const {
  std::uint32_t n = extent.n;
  if (extent.kind == ir::Dim::Kind::kTokens) n = dims.n_tokens;
  if (extent.kind == ir::Dim::Kind::kOutputs) n = dims.n_outputs;
  return n / tile + (n % tile != 0);
}

Status check_ranges(const Submission& submission) {
  const auto outside = [](std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    return first > size || count > size - first;
  };
  const auto refuse = [](std::string_view what, std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    return fail(StatusCode::kInvalidArgument, "[ring] {} {} + {} of {}", what, first, count, size);
  };
  if (submission.batch == nullptr) return fail(StatusCode::kInvalidArgument, "[ring] a submission without a batch");
  const PacketBatch& batch = *submission.batch;
  if (outside(submission.first, submission.count, batch.packets.size()))
    return refuse("packets", submission.first, submission.count, batch.packets.size());
  for (std::uint32_t i = 0; i < submission.count; ++i) {
    const Packet& packet = batch.packets[submission.first + i];
    if (packet.n_inputs > packet.n_bindings) return refuse("inputs", 0, packet.n_inputs, packet.n_bindings);
    if (outside(packet.first_binding, packet.n_bindings, batch.bindings.size()))
      return refuse("bindings", packet.first_binding, packet.n_bindings, batch.bindings.size());
    if (outside(packet.first_push, packet.push_bytes, batch.push.size()))
      return refuse("push constants", packet.first_push, packet.push_bytes, batch.push.size());
    for (const GridExtent& axis : packet.grid)
      if (axis.tile == 0) return fail(StatusCode::kInvalidArgument, "[ring] {} has a tile of 0", to_string(packet.op));
  }
  return {};
}

Status check_fence(std::string_view tier, Fence fence, std::uint64_t n_given) {
  if (fence.value > n_given)
    return fail(StatusCode::kInvalidArgument, "[{}] fence {} was never given out, {} were", tier, fence.value, n_given);
  return {};
}

Status check_kernel(std::string_view tier, const Packet& packet, const kernel::SlotKernel* kernel,
                    std::size_t n_loaded) {
  if (kernel == nullptr)
    return fail(StatusCode::kInvalidArgument, "[{}] kernel {} is not loaded, {} are", tier, packet.kernel.id, n_loaded);
  if (packet.push_bytes != kernel->push_bytes || packet.n_bindings != kernel->n_bindings)
    return fail(StatusCode::kInvalidArgument,
                "[{}] {} has {} bindings and {} bytes of push constants, its kernel wants {} and {}", tier,
                to_string(packet.op), packet.n_bindings, packet.push_bytes, kernel->n_bindings, kernel->push_bytes);
  return {};
}

}  // namespace zinc_rt::ring
