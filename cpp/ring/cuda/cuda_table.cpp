// The tier's table of kernels. The code of an entry is one 4-byte slot a symbol, and its name the opcode: which
// functions of the embedded images an op is, and in which shapes, ops.cpp says.
#include <cstring>

#include "kernels/sm_90/dtypes.h"
#include "ring/cuda/cuda_ring.h"

namespace zinc_rt::ring {
namespace {

#define ZRT_SAME_NUMBER(name) \
  static_assert(static_cast<int>(cuda::name) == static_cast<int>(DType::name), "kernels/sm_90/dtypes.h: " #name)
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
ZRT_SAME_NUMBER(kQ8A256);
#undef ZRT_SAME_NUMBER

std::vector<DType> key_types(Keys keys) {
  std::vector<DType> types;
  switch (keys) {
    case Keys::kNone: return {DType::kF32};
    case Keys::kKv: return {DType::kF32, DType::kF16, DType::kQ8_0};
    case Keys::kQ4K: return {DType::kQ4_K};
    case Keys::kWeights:
      for (int i = 0; i < static_cast<int>(DType::kCount); ++i)
        if (traits(static_cast<DType>(i)).is_weight) types.push_back(static_cast<DType>(i));
      return types;
  }
  return types;
}

}  // namespace

kernel::KernelTable make_cuda_table() {
  kernel::KernelTable table(kernel::Target::kSm90);
  for (const CudaOp& op : cuda_ops()) {
    const ir::OpRule& rule = ir::rule(op.op);
    kernel::KernelEntry entry;
    entry.file.target = kernel::Target::kSm90;
    entry.file.name = to_string(op.op);
    entry.file.subgroup_size = 32;
    entry.file.buffer_count = static_cast<std::uint32_t>(rule.inputs.size() + rule.outputs.size());
    entry.file.push_const_bytes = static_cast<std::uint32_t>(4 * rule.attrs.size());
    if (op.rows != nullptr) entry.grid[0].variable = op.rows;
    entry.file.code.resize(4 * op.symbols.size());
    for (std::size_t i = 0; i < op.symbols.size(); ++i) {
      entry.file.symbols.push_back({op.symbols[i], static_cast<std::uint32_t>(4 * i)});
      std::memcpy(entry.file.code.data() + 4 * i, &kernel::kPlaceholder, 4);
    }
    for (const DType key : key_types(op.keys)) table.add(op.op, key, entry);
  }
  return table;
}

}  // namespace zinc_rt::ring
