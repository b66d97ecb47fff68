// This is the CPU reference kernel of the op LM_HEAD. It computes logits[r] = W x[r], a LINEAR without bias over the
// whole vocabulary.
// Shapes: x [n, d], w [v, d], logits [n, v].
// Order of sums: as in LINEAR.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::LmHead;
constexpr NameList kSymbols{"dim:n", "dim:d", "dim:v", "dtype:w", "dtype:x"};

constexpr std::uint32_t kTile = 256;

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), d = args.dim(kSymbols["dim:d"]), v = args.dim(kSymbols["dim:v"]);
  const auto x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  const LinearArgs linear{args.buffers[Operand::w],
                          static_cast<DType>(args.symbols[kSymbols["dtype:w"]]),
                          args.is_packed(Operand::w),
                          v,
                          nullptr,
                          args.buffers[Operand::x],
                          x_dtype,
                          row_bytes(x_dtype, d),
                          d,
                          n,
                          args.buffer<float>(Operand::logits),
                          v,
                          reinterpret_cast<float*>(args.lds),
                          args.set};
  linear_rows(linear, args.wg[0] * kTile, std::min(v, (args.wg[0] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_lm_head;
const CpuKernel kCpuKernel_lm_head{
    "LM_HEAD",          run,
    kSymbols,           {{"v", kTile}, {}},
    KeyTypes::kWeights, [](const std::uint32_t* s) { return std::uint64_t{s[kSymbols["dim:d"]]} * 4; }};

}  // namespace zinc_rt::cpu
