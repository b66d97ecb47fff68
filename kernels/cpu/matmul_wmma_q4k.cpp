// This is the CPU reference kernel of the op MATMUL_WMMA_Q4K. It computes c = a b^T, the form of LINEAR for matrix
// units. b is in Q4_K and is dequantized while it is read; a was quantized by QUANTIZE.
// Shapes: a [n, k] q8a256, b [m, k] q4_k, c [n, m] f32.
// Order of sums: the integer dot of quant/q4_k.cpp, so int8 matrix units compute the same bits.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MatmulWmmaQ4K;
constexpr NameList kSymbols{"dim:n", "dim:k", "dim:m"};

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), k = args.dim(kSymbols["dim:k"]), m = args.dim(kSymbols["dim:m"]);
  linear_rows(
      {args.buffers[Operand::b], DType::kQ4_K, args.is_packed(Operand::b), m, nullptr, args.buffers[Operand::a],
       DType::kQ8A256, row_bytes(DType::kQ8A256, k), k, n, args.buffer<float>(Operand::c), m, nullptr, args.set},
      args.wg[0] * kTile, std::min(m, (args.wg[0] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_matmul_wmma_q4k;
const CpuKernel kCpuKernel_matmul_wmma_q4k{"MATMUL_WMMA_Q4K", run, kSymbols, {{"m", kTile}, {}}, KeyTypes::kQ4K};

}  // namespace zinc_rt::cpu
