#include "vulkan/device/matrices.h"

#include <algorithm>
#include <map>

namespace zinc_rt::vulkan {
namespace {

// Opcodes and other numbers from the SPIR-V specification.
constexpr std::uint32_t kOpTypeVoid = 19, kOpTypeInt = 21, kOpConstant = 43, kOpVariable = 59,
                        kOpTypeCooperativeMatrix = 4456, kHeaderWords = 5, kBound = 3, kAccumulator = 2;

std::uint32_t word(std::uint32_t n_words, std::uint32_t op) {
  return n_words << 16 | op;
}
bool declares(std::uint32_t op) {
  return (op >= kOpTypeVoid && op <= kOpVariable) || op == kOpTypeCooperativeMatrix;
}

// Finds or adds the integer types of the module, and the constants that matrix types need. All of these must be
// declared before other types.
class Integers {
 public:
  explicit Integers(std::uint32_t& bound) : bound_(bound) {}
  void know(std::uint32_t id, std::uint32_t bits, std::uint32_t is_signed) { types_[{bits, is_signed}] = id; }
  std::uint32_t type(std::uint32_t bits, std::uint32_t is_signed) {
    auto& id = types_[{bits, is_signed}];
    return id != 0 ? id : id = bound_++;
  }
  std::uint32_t constant(std::uint32_t value) {
    type(32, 0);
    auto& id = constants_[value];
    return id != 0 ? id : id = bound_++;
  }
  void write(std::vector<std::uint32_t>& out) {
    for (const auto& [shape, id] : types_) out.insert(out.end(), {word(4, kOpTypeInt), id, shape.first, shape.second});
    for (const auto& [value, id] : constants_) out.insert(out.end(), {word(4, kOpConstant), type(32, 0), id, value});
  }

 private:
  std::uint32_t& bound_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> types_;
  std::map<std::uint32_t, std::uint32_t> constants_;
};

}  // namespace

std::vector<std::uint32_t> complete_matrices(std::span<const std::uint32_t> in) {
  const auto op = [&](std::size_t at) { return in[at] & 0xFFFFu; };
  const auto length = [&](std::size_t at) { return in[at] >> 16; };
  std::uint32_t bound = in[kBound];
  Integers integers(bound);
  bool has_matrices = false;
  for (std::size_t i = kHeaderWords; i < in.size(); i += length(i)) {
    if (op(i) == kOpTypeInt) integers.know(in[i + 1], in[i + 2], in[i + 3]);
    if (op(i) != kOpTypeCooperativeMatrix) continue;
    has_matrices = true;
    integers.type(in[i + 5] == kAccumulator ? 32 : 8, 1);
    for (std::size_t operand = 2; operand < 6; ++operand) integers.constant(in[i + operand]);
  }
  if (!has_matrices) return {in.begin(), in.end()};
  std::vector<std::uint32_t> out(in.begin(), in.begin() + kHeaderWords);
  bool is_written = false;
  for (std::size_t i = kHeaderWords; i < in.size(); i += length(i)) {
    if (!is_written && declares(op(i))) {
      integers.write(out);
      is_written = true;
    }
    if (op(i) == kOpTypeInt) continue;
    if (op(i) == kOpTypeCooperativeMatrix) {
      out.insert(out.end(),
                 {word(7, kOpTypeCooperativeMatrix), in[i + 1], integers.type(in[i + 5] == kAccumulator ? 32 : 8, 1)});
      for (std::size_t operand = 2; operand < 6; ++operand) out.push_back(integers.constant(in[i + operand]));
      continue;
    }
    out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(i),
               in.begin() + static_cast<std::ptrdiff_t>(i + length(i)));
  }
  out[kBound] = bound;
  return out;
}

}  // namespace zinc_rt::vulkan
