#include "ir/op.h"

#include <array>

namespace zinc_rt::ir {
namespace {

struct OpName {
  std::string_view name;
  std::string_view category;
};
constexpr std::array<OpName, kOpCount> kOpNames{{
#define ZRT_OP_ROW(name, category) {#name, category},
    ZRT_OPCODES(ZRT_OP_ROW)
#undef ZRT_OP_ROW
}};

}  // namespace

std::string_view to_string(Op op) {
  return kOpNames[static_cast<std::size_t>(op)].name;
}
std::string_view category(Op op) {
  return kOpNames[static_cast<std::size_t>(op)].category;
}

std::optional<Op> parse_op(std::string_view name) {
  for (std::size_t i = 0; i < kOpCount; ++i)
    if (kOpNames[i].name == name) return static_cast<Op>(i);
  return std::nullopt;
}

}  // namespace zinc_rt::ir
