// This is the CPU reference kernel of the op MOE_GATE_TOPK, which computes the router's logits = LINEAR(x, gate_w) and
// their softmax over all e experts. The n_used most likely experts are chosen (of equal ones the lower id) and written
// most likely first, with their probabilities as weights. If renormalize is 1, the weights are divided by their sum.
// Then all weights are multiplied by `scale`.
// Shapes: x [n, d], gate_w [e, d], logits [n, e], ids, weights [n, n_used].
// Order of sums: softmax takes the maximum, exp, and the sum in 16 lanes (lane = expert mod 16), folded, and multiplies
//   by the sum's reciprocal. The sum of the chosen probabilities runs from the most likely on.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/fold.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

float sum_lanes(const float* x, std::uint32_t n) {
  float lanes[16] = {};
  for (std::uint32_t i = 0; i < n; ++i) lanes[i % 16] = lanes[i % 16] + x[i];
  return fold16(lanes);
}

namespace {

using Operand = operand::MoeGateTopk;
constexpr NameList kSymbols{"dim:d", "dim:e", "dtype:gate_w", "dtype:x"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::MoeGateTopk>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), e = args.dim(kSymbols["dim:e"]), t = args.wg[0];
  const auto x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float* p = scratch + d;
  float* logits = args.buffer<float>(Operand::logits) + std::uint64_t{t} * e;
  auto* ids = args.buffer<std::int32_t>(Operand::ids) + std::uint64_t{t} * c.n_used;
  float* weights = args.buffer<float>(Operand::weights) + std::uint64_t{t} * c.n_used;
  linear_rows({args.buffers[Operand::gate_w], static_cast<DType>(args.symbols[kSymbols["dtype:gate_w"]]),
               args.is_packed(Operand::gate_w), e, nullptr,
               args.buffer<const std::byte>(Operand::x) + t * row_bytes(x_dtype, d), x_dtype, 0, d, 1, logits, e,
               scratch, args.set},
              0, e);
  const float max = logits[argmax_row(logits, e)];
  for (std::uint32_t i = 0; i < e; ++i) p[i] = exact::exp(logits[i] - max);
  const float inverse = exact::rcp(sum_lanes(p, e));
  for (std::uint32_t j = 0; j < c.n_used; ++j) {
    std::uint32_t best = e;
    for (std::uint32_t i = 0; i < e; ++i) {
      if (std::find(ids, ids + j, static_cast<std::int32_t>(i)) != ids + j) continue;
      if (best == e || logits[i] > logits[best]) best = i;
    }
    ids[j] = static_cast<std::int32_t>(best);
    weights[j] = p[best] * inverse;
  }
  if (c.renormalize != 0) {
    float sum = 0.0f;
    for (std::uint32_t j = 0; j < c.n_used; ++j) sum = sum + weights[j];
    const float r = exact::rcp(sum);
    for (std::uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * r;
  }
  if (c.scale != 1.0f)
    for (std::uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * c.scale;
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_gate_topk;
const CpuKernel kCpuKernel_moe_gate_topk{
    "MOE_GATE_TOPK", run, kSymbols, {{"n"}, {}}, KeyTypes::kWeights, [](const std::uint32_t* s) {
      return (std::uint64_t{s[kSymbols["dim:d"]]} + s[kSymbols["dim:e"]]) * 4;
    }};

}  // namespace zinc_rt::cpu
