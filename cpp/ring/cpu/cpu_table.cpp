#include "ring/cpu/cpu_table.h"

#include "base/error.h"
#include "base/kv_type.h"
#include "kernel/slots.h"
#include "ring/key_types.h"

namespace zinc_rt::ring {
namespace {

std::vector<DType> types_of(cpu::KeyTypes keys) {
  if (keys == cpu::KeyTypes::kF16AndBF16) return {DType::kF16, DType::kBF16};
  std::vector<DType> cells;
  for (const KvType& type : kv_types()) cells.push_back(type.k);
  return key_types(keys, cells, weight_types());
}

kernel::KernelEntry make_entry(const cpu::CpuKernel& code, const ir::OpRule& rule) {
  kernel::KernelEntry entry;
  entry.file = kernel::with_slots(rule, code.symbols);
  entry.file.target = kernel::Target::kCpu;
  entry.file.name = code.op;
  for (std::size_t i = 0; i < 2; ++i) {
    if (code.grid[i].variable != nullptr) entry.grid[i].variable = code.grid[i].variable;
    entry.grid[i].tile = entry.file.workgroup_size[i] = code.grid[i].tile;
  }
  entry.lds_bytes = code.lds_bytes;
  return entry;
}

}  // namespace

kernel::KernelTable make_cpu_table() {
  kernel::KernelTable table(kernel::Target::kCpu);
  for (const cpu::CpuKernel* code : cpu::cpu_kernels()) {
    const auto op = ir::parse_op(code->op);
    if (!op) continue;  // tests_cpp/kernels/inventory_test.cpp checks that every kernel has an op
    for (const DType key : types_of(code->keys)) table.add(*op, key, make_entry(*code, ir::rule(*op)));
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
