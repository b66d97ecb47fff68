#include "ring/gpu/op_table.h"

#include "ir/op_rules.h"

namespace zinc_rt::ring::gpu {
namespace {

constexpr std::uint32_t kWave = 32;  // lanes per wave

}  // namespace

std::string kernel_name(ir::Op op) {
  std::string name(to_string(op));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

void add_row(kernel::KernelTable& table, const Kernels& kernels, const OpRow& row) {
  kernel::KernelEntry entry;
  entry.file = kernel::with_slots(ir::rule(row.op), row.symbols);
  entry.file.target = table.target();
  entry.file.subgroup_size = kWave;
  entry.file.workgroup_size[0] = row.threads != 0 ? row.threads : kWave;
  for (std::size_t i = 0; i < std::size(row.grid); ++i)
    if (row.grid[i].variable != nullptr) entry.grid[i] = {row.grid[i].variable, row.grid[i].tile};
  for (const DType key : key_types(row.keys, kernels.cells, kernels.weights)) {
    entry.file.name = kernels.name(row, key);
    table.add(row.op, key, entry);
  }
}

bool has_name(const Kernels& kernels, const OpRow& row, std::string_view name) {
  return std::ranges::any_of(key_types(row.keys, kernels.cells, kernels.weights),
                             [&](DType key) { return kernels.name(row, key) == name; });
}

Result<kernel::SlotKernel> read_row(const Kernels& kernels, const OpRow& row, const kernel::ZrtFile& file) {
  ZRT_TRY(auto slots, kernel::read_slots(kernels.tier, file, ir::rule(row.op), row.symbols));
  for (const OpRow::Limit& limit : row.limits) {
    const std::uint32_t value = slots.symbols[limit.symbol];
    if (value <= limit.most || value == kernel::kAbsent) continue;
    if (limit.missing != nullptr)
      return fail(StatusCode::kUnavailable, "[{}] the tier has no kernel for {} {}", kernels.tier, to_string(row.op),
                  limit.missing);
    return fail(StatusCode::kUnavailable, "[{}] the tier has no kernel for {} with {} = {}, at most {}", kernels.tier,
                to_string(row.op), row.symbols[limit.symbol], value, limit.most);
  }
  return slots;
}

}  // namespace zinc_rt::ring::gpu
