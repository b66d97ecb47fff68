// Kernels without machine code: a file has one 4-byte slot per symbol, in the order of the symbols, and its tier knows
// by the kernel's name what to run.
// Thread rule: plain functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op_rules.h"
#include "kernel/zrt_file.h"

namespace zinc_rt::kernel {

// A file for an op, without target and name: the operands and attributes of its rule, a slot a symbol.
ZrtFile with_slots(const ir::OpRule& rule, std::span<const char* const> symbols);

// A kernel of this kind and the numbers of its symbols.
struct SlotKernel {
  std::vector<std::uint32_t> symbols;
  std::uint32_t push_bytes = 0, n_bindings = 0;
};
// Checks that a file is for this target and that each symbol has a number. Errors: kUnavailable for another target,
// kInvalidArgument for a symbol without a number. `tier` begins the messages.
Status check_patched(std::string_view tier, const ZrtFile& file, Target target);
// Errors: kCorrupt if symbols, operands or attributes are not those of the op.
Result<SlotKernel> read_slots(std::string_view tier, const ZrtFile& file, const ir::OpRule& rule,
                              std::span<const char* const> symbols);

}  // namespace zinc_rt::kernel
