// The table of a GPU tier's ops has one row per op. Lowering refuses an op without a row. A kernel's .zrt file has one
// 4-byte slot per symbol (kernel/slots.h), and its name is the name of the op's row.
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/kernel_table.h"
#include "kernel/slots.h"
#include "ring/key_types.h"

namespace zinc_rt::ring::gpu {

// Keys tells by which types the kernels of an op differ (ir::OpRule::key_input): none, weights, the KV cache's cells,
// or only Q4_K.
enum class Keys : std::uint8_t { kNone, kWeights, kKv, kQ4K };

// Axis computes how many workgroups run along an axis: ceil(variable / tile).
struct Axis {
  const char* variable = nullptr;  // a dimension or attribute of the op's rule; null: 1 workgroup
  std::uint32_t tile = 1;
};

struct OpRow {
  ir::Op op;
  std::vector<const char*> symbols;  // the result of symbols_of<op_symbol::...>()
  // grid[axis] computes the workgroups of the op's own kernel. If the op has no kernel of its own, the first axis still
  // computes the number of its rows.
  Axis grid[3];
  Keys keys = Keys::kNone;
  // Number of threads in a workgroup of the op's own kernel. 0: the op has no kernel of its own, or the plan chooses
  // the number.
  std::uint32_t threads = 0;
  struct Limit {
    std::size_t symbol;
    // The largest value that the kernels support. The symbol of an absent operand passes any limit, so a limit
    // of 0 on an extent means that the operand must be absent.
    std::uint32_t most;
    // What larger values mean, if the kernels lack a feature: "with a bias" follows the op's name in the error. Null: the
    // error gives the symbol and both numbers.
    const char* missing = nullptr;
  };
  std::vector<Limit> limits = {};
};
template <class Planner, class Call>
struct Op : OpRow {
  void (*plan)(Planner& planner, const Call& call);  // plans the launches
};

// Kernels holds what differs between tiers when a kernel table is built from the rows.
struct Kernels {
  std::string_view tier;           // begins error messages
  std::span<const DType> cells;    // the types of the KV cache's keys
  std::span<const DType> weights;  // the types of weights
  std::string (*name)(const OpRow& row, DType key);
};

// Returns an op's opcode in lower case, which is the name of its kernel.
std::string kernel_name(ir::Op op);

// Kernel is a loaded kernel: its row in the table, and the values of its symbols.
template <class Row>
struct Kernel : kernel::SlotKernel {
  const Row* op;
  std::string name;
};

// Adds the entries of a row to a tier's kernel table.
void add_row(kernel::KernelTable& table, const Kernels& kernels, const OpRow& row);
template <class Row>
kernel::KernelTable make_table(const Kernels& kernels, std::span<const Row> rows, kernel::Target target) {
  kernel::KernelTable table(target);
  for (const Row& row : rows) add_row(table, kernels, row);
  return table;
}

// Returns whether a file of that name belongs to the row.
bool has_name(const Kernels& kernels, const OpRow& row, std::string_view name);
// Reads the symbols' values from the file of a row's kernel. Errors: those of read_kernel().
Result<kernel::SlotKernel> read_row(const Kernels& kernels, const OpRow& row, const kernel::ZrtFile& file);
// Reads the kernel in a .zrt file. Errors: kCorrupt for a file that cannot be read or whose symbols differ from the
// op's; kUnavailable for another target, or for a number beyond a limit of the row; kInvalidArgument for a symbol
// without a number; kNotFound if no row has the file's name.
template <class Row>
Result<Kernel<Row>> read_kernel(const Kernels& kernels, std::span<const Row> rows, std::span<const std::byte> zrt,
                                kernel::Target target) {
  ZRT_TRY(const auto file, kernel::read_zrt(zrt));
  ZRT_CHECK_OK(kernel::check_patched(kernels.tier, file, target));
  const auto row = std::ranges::find_if(rows, [&](const Row& r) { return has_name(kernels, r, file.name); });
  if (row == rows.end()) return fail(StatusCode::kNotFound, "[{}] no kernel is named {}", kernels.tier, file.name);
  ZRT_TRY(auto slots, read_row(kernels, *row, file));
  return Kernel<Row>{std::move(slots), &*row, file.name};
}

}  // namespace zinc_rt::ring::gpu
