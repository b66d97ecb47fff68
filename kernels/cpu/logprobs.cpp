// This is the CPU reference kernel of the op LOGPROBS. Of each row of logits that wants it, it computes what the
// log-probabilities of its tokens are made of (LogprobStats). The logarithm is left to the host.
// Shapes: logits [n, v]; token [n], the token that was picked for each row; params [n, 2 words], a LogprobParams for
//   each row; stats [n, 260 words], a LogprobStats for each row.
//
// max is the largest logit of the row; NaN is ignored, a zero is +0, and a row of NaN has minus infinity.
// sum adds e^(l - max) of all logits l in float64 (exp_of_distance), without fma. It is NaN if a logit is NaN or max is
//   not finite.
// top lists the n_top tokens with the largest logits, in the order (l descending, id ascending), without NaN. If the
//   row has fewer tokens, id -1 and logit 0 fill the list. What is behind n_top tokens is not written.
// A row with a negative n_top is not written at all.
// Order of sums: lane i of 16 adds the terms whose ids are i modulo 16, in ascending order. Then the sums of the lanes
// are added in their order, lane 0 first.
#include <algorithm>
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/logprobs.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Logprobs;
constexpr NameList kSymbols{"dim:v"};
constexpr std::uint32_t kLanes = 16;

float max_of(const float* logits, std::uint32_t v) {
  float max = -INFINITY;
  for (std::uint32_t id = 0; id < v; ++id)
    if (logits[id] > max) max = logits[id];
  return max + 0.0f;
}

std::uint64_t sum_bits(const float* logits, std::uint32_t v, float max) {
  if (!std::isfinite(max)) return kLogprobNan;
  double lanes[kLanes] = {}, sum = 0;
  for (std::uint32_t id = 0; id < v; ++id) lanes[id % kLanes] += exp_of_distance(logits[id], max);
  for (const double lane : lanes) sum += lane;
  return std::isnan(sum) ? kLogprobNan : ZRT_DOUBLE_BITS(sum);
}

void list_top(const float* logits, std::uint32_t v, std::uint32_t n_top, LogprobStats::Token* top) {
  std::fill_n(top, n_top, LogprobStats::Token{-1, 0.0f});
  std::uint32_t n = 0;
  for (std::uint32_t id = 0; id < v; ++id) {
    const float l = logits[id];
    std::uint32_t at = n;
    while (at > 0 && l > top[at - 1].logit) --at;
    if (std::isnan(l) || at == n_top) continue;
    n = std::min(n + 1, n_top);
    std::copy_backward(top + at, top + n - 1, top + n);
    top[at] = {static_cast<std::int32_t>(id), l};
  }
}

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(kSymbols["dim:v"]), r = args.wg[0];
  const LogprobParams params = args.buffer<const LogprobParams>(Operand::params)[r];
  if (params.n_top < 0) return;
  const float* logits = args.buffer<const float>(Operand::logits) + std::uint64_t{r} * v;
  LogprobStats& stats = args.buffer<LogprobStats>(Operand::stats)[r];
  const auto token =
      static_cast<std::uint32_t>(params.token >= 0 ? params.token : args.buffer<const std::int32_t>(Operand::token)[r]);
  stats.max = max_of(logits, v);
  stats.logit = token < v ? logits[token] : 0.0f;
  const std::uint64_t sum = sum_bits(logits, v, stats.max);
  stats.sum[0] = static_cast<std::uint32_t>(sum);
  stats.sum[1] = static_cast<std::uint32_t>(sum >> 32);
  list_top(logits, v, std::min(static_cast<std::uint32_t>(params.n_top), kLogprobTop), stats.top);
}

}  // namespace

extern const CpuKernel kCpuKernel_logprobs;
const CpuKernel kCpuKernel_logprobs{"LOGPROBS", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
