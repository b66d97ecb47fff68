// This is the CPU reference kernel of the op LINEAR_HEADS. It multiplies each of the h heads of a row by a matrix of
// its own: y[t][head] = LINEAR(x[t][head], w[head]).
// Shapes: x [n, h * k], w [h, m, k], y [n, h * m].
// Order of sums: as in LINEAR. Heads, tokens and outputs are independent of each other.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::LinearHeads;
constexpr NameList kSymbols{"dim:n", "dim:h", "dim:k", "dim:m", "dtype:w", "dtype:x", "pitch:w"};

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t h = args.dim(kSymbols["dim:h"]), k = args.dim(kSymbols["dim:k"]), m = args.dim(kSymbols["dim:m"]);
  const std::uint64_t head = args.wg[0];
  const auto x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  const LinearArgs linear{args.buffer<const std::byte>(Operand::w) + head * args.symbols[kSymbols["pitch:w"]],
                          static_cast<DType>(args.symbols[kSymbols["dtype:w"]]),
                          args.is_packed(Operand::w),
                          m,
                          nullptr,
                          args.buffer<const std::byte>(Operand::x) + head * row_bytes(x_dtype, k),
                          x_dtype,
                          row_bytes(x_dtype, std::uint64_t{h} * k),
                          k,
                          args.dim(kSymbols["dim:n"]),
                          args.buffer<float>(Operand::y) + head * m,
                          std::uint64_t{h} * m,
                          reinterpret_cast<float*>(args.lds),
                          args.set};
  linear_rows(linear, args.wg[1] * kTile, std::min(m, (args.wg[1] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_linear_heads;
const CpuKernel kCpuKernel_linear_heads{
    "LINEAR_HEADS",     run,
    kSymbols,           {{"h"}, {"m", kTile}},
    KeyTypes::kWeights, [](const std::uint32_t* s) { return std::uint64_t{s[kSymbols["dim:k"]]} * 4; }};

}  // namespace zinc_rt::cpu
