// A .zrt file of this tier has the name of its op. ops.cpp says which functions of the embedded images the op launches,
// and with which shapes.
#include "ring/cuda/plan/kernels.h"

#include <algorithm>

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

std::string name_of(const gpu::OpRow& row, DType) {
  return std::string(to_string(row.op));
}
constexpr DType kCells[] = {DType::kF32, DType::kF16, DType::kQ8_0, DType::kR8, DType::kR4, DType::kI16};
// The types of weights that the kernels read. Lowering refuses others by name.
constexpr DType kWeights[] = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0,  DType::kQ4_1,   DType::kQ5_0,
                              DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K,  DType::kQ4_K,   DType::kQ5_K,
                              DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kFixed16};
constexpr gpu::Kernels kKernels{"t_cuda", kCells, kWeights, name_of};

std::uint32_t symbol_of(const GridExtent& extent) {
  switch (extent.extent.kind) {
    case ir::Dim::Kind::kTokens: return cuda::kSymbolicTokens;
    case ir::Dim::Kind::kOutputs: return cuda::kSymbolicOutputs;
    case ir::Dim::Kind::kConst: return extent.extent.n;
  }
  return 1;
}

template <class Operand>
constexpr Pages pages_of_operands(unsigned width_symbol) {
  return {Operand::page_table, Operand::pos, Operand::slot, static_cast<int>(width_symbol)};
}

}  // namespace

kernel::KernelTable make_cuda_table() {
  return gpu::make_table(kKernels, cuda_ops(), kernel::Target::kSm90);
}

std::span<const std::string_view> cuda_join_patterns() {
  static const auto kPatterns = gpu::patterns_of(cuda_joins());
  return kPatterns;
}

Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt) {
  return gpu::read_kernel(kKernels, cuda_ops(), zrt, kernel::Target::kSm90);
}

Pages pages_of(ir::Op op) {
  switch (op) {
    case ir::Op::RMS_NORM_FUSED_ROPE_KV_WRITE:
      return pages_of_operands<operand::RmsNormFusedRopeKvWrite>(op_symbol::RopeKvWrite::m);
    case ir::Op::FLASH_ATTN: return pages_of_operands<operand::FlashAttn>(op_symbol::FlashAttn::m);
    case ir::Op::FLASH_ATTN_BATCHED: return pages_of_operands<operand::FlashAttnBatched>(op_symbol::FlashAttn::m);
    case ir::Op::KV_WRITE_BATCHED: return pages_of_operands<operand::KvWriteBatched>(op_symbol::KvWrite::m);
    default: return {};
  }
}

OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket) {
  const LoadedKernel& kernel = kernels[packet.kernel.id - 1];
  const auto place = [](const Binding& binding) { return place_of(PlaceKind::kValue, binding.value); };
  OpCall call{gpu::call_of<Place>(batch, packet, kernel, bucket, place), symbol_of(packet.grid[0])};
  // In a bucket of one token the number of tokens is an argument, so kernels need not read it from memory.
  if (bucket.n_tokens == 1) {
    if (call.rows_symbol == cuda::kSymbolicTokens) call.rows_symbol = 1;
    std::ranges::replace(std::span(call.numbers).first(call.n_symbols), cuda::kSymbolicTokens, 1u);
  }
  return call;
}

// Considers all buckets and parts, because a bucket with fewer rows may need more scratch memory.
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
