// The code of a table's entry is one 4-byte slot a symbol, and its name the opcode: which functions of the embedded
// images an op is, and in which shapes, ops.cpp says.
#include "ring/cuda/plan/kernels.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op_rules.h"
#include "kernel/slots.h"
#include "kernels/cuda/dtypes.h"

namespace zinc_rt::ring {
namespace {

#define ZRT_SAME_NUMBER(name) \
  static_assert(static_cast<int>(cuda::name) == static_cast<int>(DType::name), "kernels/cuda/dtypes.h: " #name)
ZRT_SAME_NUMBER(kF32);
ZRT_SAME_NUMBER(kF16);
ZRT_SAME_NUMBER(kBF16);
ZRT_SAME_NUMBER(kQ4_0);
ZRT_SAME_NUMBER(kQ4_1);
ZRT_SAME_NUMBER(kQ5_0);
ZRT_SAME_NUMBER(kQ5_1);
ZRT_SAME_NUMBER(kQ8_0);
ZRT_SAME_NUMBER(kQ2_K);
ZRT_SAME_NUMBER(kQ3_K);
ZRT_SAME_NUMBER(kQ4_K);
ZRT_SAME_NUMBER(kQ5_K);
ZRT_SAME_NUMBER(kQ6_K);
ZRT_SAME_NUMBER(kIQ4_NL);
ZRT_SAME_NUMBER(kIQ4_XS);
ZRT_SAME_NUMBER(kMXFP4);
ZRT_SAME_NUMBER(kFixed16);
ZRT_SAME_NUMBER(kQ8A32);
ZRT_SAME_NUMBER(kQ8A256);
ZRT_SAME_NUMBER(kQ16A256);
#undef ZRT_SAME_NUMBER
static_assert(static_cast<int>(cuda::kCacheI16) == static_cast<int>(DType::kI16));
static_assert(static_cast<int>(cuda::kCacheR8) == static_cast<int>(DType::kR8));
static_assert(static_cast<int>(cuda::kCacheR4) == static_cast<int>(DType::kR4));

std::vector<DType> key_types(Keys keys) {
  std::vector<DType> types;
  switch (keys) {
    case Keys::kNone: return {DType::kF32};
    case Keys::kKv: return {DType::kF32, DType::kF16, DType::kQ8_0, DType::kR8, DType::kR4, DType::kI16};
    case Keys::kQ4K: return {DType::kQ4_K};
    case Keys::kWeights: return weight_types();
  }
  return types;
}

std::uint32_t symbol_of(const GridExtent& extent) {
  switch (extent.extent.kind) {
    case ir::Dim::Kind::kTokens: return cuda::kSymbolicTokens;
    case ir::Dim::Kind::kOutputs: return cuda::kSymbolicOutputs;
    case ir::Dim::Kind::kConst: return extent.extent.n;
  }
  return 1;
}

}  // namespace

kernel::KernelTable make_cuda_table() {
  kernel::KernelTable table(kernel::Target::kSm90);
  for (const CudaOp& op : cuda_ops()) {
    kernel::KernelEntry entry;
    entry.file = kernel::with_slots(ir::rule(op.op), op.symbols);
    entry.file.target = kernel::Target::kSm90;
    entry.file.name = to_string(op.op);
    entry.file.subgroup_size = 32;
    if (op.rows != nullptr) entry.grid[0].variable = op.rows;
    for (const DType key : key_types(op.keys)) table.add(op.op, key, entry);
  }
  return table;
}

std::span<const std::string_view> cuda_join_patterns() {
  static const auto patterns = [] {
    std::vector<std::string_view> all;
    for (const CudaJoin& join : cuda_joins()) all.push_back(join.pattern);
    return all;
  }();
  return patterns;
}

Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt) {
  ZRT_TRY(const auto file, kernel::read_zrt(zrt));
  ZRT_CHECK_OK(kernel::check_patched("t_cuda", file, kernel::Target::kSm90));
  const auto code = ir::parse_op(file.name);
  const CudaOp* op = code ? find_cuda_op(*code) : nullptr;
  if (op == nullptr) return fail(StatusCode::kNotFound, "[t_cuda] no kernel is named {}", file.name);
  ZRT_TRY(auto slots, kernel::read_slots("t_cuda", file, ir::rule(op->op), op->symbols));
  return LoadedKernel{std::move(slots), op};
}

OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket) {
  const LoadedKernel& kernel = kernels[packet.kernel.id - 1];
  OpCall call{kernel.op->op, {}, symbol_of(packet.grid[0]), kernel.symbols, {}, bucket};
  for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
    call.buffers.push_back(binding.bo == 0 ? Place{} : place_of(PlaceKind::kValue, binding.value));
  const auto push = std::span(batch.push).subspan(packet.first_push, packet.push_bytes);
  call.push.assign(push.begin(), push.end());
  // In a bucket of one token kernels need not ask how many there are.
  if (bucket.n_tokens == 1) {
    if (call.rows_symbol == cuda::kSymbolicTokens) call.rows_symbol = 1;
    std::ranges::replace(call.symbols, cuda::kSymbolicTokens, 1u);
  }
  return call;
}

// All buckets and parts count: one of fewer rows may take more.
std::uint64_t most_scratch_bytes(const PacketBatch& batch, std::span<const LoadedKernel> kernels, StepDims most,
                                 const DeviceProfile& device) {
  const std::pair<std::uint32_t, std::uint32_t> parts[] = {
      {0, batch.body_end}, {batch.body_end, static_cast<std::uint32_t>(batch.packets.size())}};
  std::uint64_t bytes = 0;
  StepDims bucket{1, 1};
  for (bool is_last = false; !is_last;) {
    is_last = bucket.n_tokens >= most.n_tokens && bucket.n_outputs >= most.n_outputs;
    for (const auto& [begin, end] : parts) {
      std::vector<OpCall> calls;
      for (std::uint32_t i = begin; i < end; ++i) calls.push_back(call_of(batch, batch.packets[i], kernels, bucket));
      bytes = std::max(bytes, plan_part(batch, begin, calls, device).scratch_bytes);
    }
    if (bucket.n_tokens < most.n_tokens) bucket.n_tokens *= 2;
    if (bucket.n_outputs < most.n_outputs) bucket.n_outputs *= 2;
  }
  return bytes;
}

}  // namespace zinc_rt::ring
