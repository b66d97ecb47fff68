#include "ring/cpu/cpu_table.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

std::vector<DType> key_types(cpu::KeyTypes keys) {
  std::vector<DType> types;
  switch (keys) {
    case cpu::KeyTypes::kNone: return {DType::kF32};
    case cpu::KeyTypes::kKv: return {DType::kF32, DType::kF16, DType::kQ8_0};
    case cpu::KeyTypes::kF16AndBF16: return {DType::kF16, DType::kBF16};
    case cpu::KeyTypes::kQ4K: return {DType::kQ4_K};
    case cpu::KeyTypes::kWeights:
      for (int i = 0; i < static_cast<int>(DType::kCount); ++i)
        if (traits(static_cast<DType>(i)).is_weight) types.push_back(static_cast<DType>(i));
      return types;
  }
  return types;
}

kernel::KernelEntry make_entry(const cpu::CpuKernel& code, const ir::OpRule& rule) {
  kernel::KernelEntry entry;
  entry.file.target = kernel::Target::kCpu;
  entry.file.name = code.op;
  entry.file.buffer_count = static_cast<std::uint32_t>(rule.inputs.size() + rule.outputs.size());
  entry.file.push_const_bytes = static_cast<std::uint32_t>(4 * rule.attrs.size());
  for (std::size_t i = 0; i < 2; ++i) {
    if (code.grid[i].variable != nullptr) entry.grid[i].variable = code.grid[i].variable;
    entry.grid[i].tile = entry.file.workgroup_size[i] = code.grid[i].tile;
  }
  entry.lds_bytes = code.lds_bytes;
  entry.file.code.resize(4 * code.symbols.size());
  for (std::size_t i = 0; i < code.symbols.size(); ++i) {
    entry.file.symbols.push_back({code.symbols[i], static_cast<std::uint32_t>(4 * i)});
    std::memcpy(entry.file.code.data() + 4 * i, &kernel::kPlaceholder, 4);
  }
  return entry;
}

}  // namespace

kernel::KernelTable make_cpu_table() {
  kernel::KernelTable table(kernel::Target::kCpu);
  for (const cpu::CpuKernel* code : cpu::cpu_kernels()) {
    const auto op = ir::parse_op(code->op);
    if (!op) continue;  // tests_cpp/kernels/inventory_test.cpp holds the two lists together
    for (const DType key : key_types(code->keys)) table.add(*op, key, make_entry(*code, ir::rule(*op)));
  }
  return table;
}

Result<const cpu::CpuKernel*> find_cpu_kernel(const kernel::ZrtFile& file) {
  for (const cpu::CpuKernel* code : cpu::cpu_kernels()) {
    if (file.name != code->op) continue;
    bool same = file.symbols.size() == code->symbols.size();
    for (std::size_t i = 0; same && i < file.symbols.size(); ++i) same = file.symbols[i].name == code->symbols[i];
    if (!same)
      return fail(StatusCode::kCorrupt, "[t_cpu] kernel {} has {} symbols that are not those of this build ({})",
                  file.name, file.symbols.size(), code->symbols.size());
    const auto wanted = make_entry(*code, ir::rule(*ir::parse_op(code->op))).file;
    if (file.buffer_count != wanted.buffer_count || file.push_const_bytes != wanted.push_const_bytes)
      return fail(StatusCode::kCorrupt,
                  "[t_cpu] kernel {} has {} buffers and {} bytes of push constants, {} and {} wanted", file.name,
                  file.buffer_count, file.push_const_bytes, wanted.buffer_count, wanted.push_const_bytes);
    return code;
  }
  return fail(StatusCode::kNotFound, "[t_cpu] no kernel is named {}", file.name);
}

}  // namespace zinc_rt::ring
