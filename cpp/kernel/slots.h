// Makes and reads .zrt files of kernels without machine code. In place of code the file has one 4-byte slot per symbol,
// in the order of the symbols. The tier has the functions in its own program and chooses the function to run by the
// kernel's name.
// Thread rule: plain functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op_rules.h"
#include "kernel/zrt_file.h"

namespace zinc_rt::kernel {

// Returns a file for an op with the operands and attributes of its rule and one slot per symbol. The caller sets target
// and name.
ZrtFile with_slots(const ir::OpRule& rule, std::span<const char* const> symbols);

// SlotKernel holds what read_slots() found in a specialized file: the values of the symbols, in their order.
struct SlotKernel {
  std::vector<std::uint32_t> symbols;
  std::uint32_t push_bytes = 0, n_bindings = 0;
};
// Checks that a file is for this target and that each symbol has a value. Errors: kUnavailable for another target,
// kInvalidArgument for a symbol without a value. Messages begin with `tier`.
Status check_patched(std::string_view tier, const ZrtFile& file, Target target);
// Reads a specialized file for an op. Errors: kCorrupt if the file's symbols, operands or attributes differ from
// `symbols` or from the op's rule.
Result<SlotKernel> read_slots(std::string_view tier, const ZrtFile& file, const ir::OpRule& rule,
                              std::span<const char* const> symbols);

}  // namespace zinc_rt::kernel
