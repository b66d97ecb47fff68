// This is the CPU reference kernel of the op SSM_SCAN. It computes Mamba 2's recurrence, head by head and token by
// token. A row of x is [x | B | C] of a token after the convolution, with x [n_heads, head_dim] and B, C [n_groups,
// state_dim]. Head h reads group h / (n_heads / n_groups). For each head, with S its state [state_dim, head_dim]:
//   t = softplus(dt + dt_bias[h])
//   S = S * exp(t * a[h]) + B (t * x)^T
//   y = C S + d[h] * x
// A token at position 0 begins with S = 0. Tokens of one slot are neighbours, in order of their positions.
// Guesses (kernels/common/state_run.h): first, runs[slot].n_replayed saved rows are applied to S. Then the slot's first
// n_certain rows change S. The rows after them are guesses: they are applied to a copy of S, and are saved, row j
// behind the certain ones as saved[slot][1 - half][j]. A saved row is [x | B | C | dt] of a token.
// Shapes: x [n, c], dt [n, n_heads], a, d [n_heads, 1], dt_bias [n_heads], pos, slot [n], state [s, n_heads, state_dim,
//   head_dim], updated in place; runs [slots, 5]; saved [slots, 2 halves, k, c + n_heads]; y [n, n_heads * head_dim].
// Order of sums: e = exp(t * a), u_i = t * x_i, y_i = 0; for s ascending S = fma(B_s, u_i, S * e), then
//   y_i = fma(S, C_s, y_i); at last y_i = fma(d, x_i, y_i); tokens in order (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/operands.h"
#include "kernels/common/push.h"
#include "kernels/common/state_run.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmScan;
constexpr NameList kSymbols{"dim:n", "dim:k", "attr:head_dim", "attr:state_dim"};

// Holds the arguments of one token of one head. `state` is S [state_dim, head_dim], which is updated. u and y have
// head_dim values.
struct ScanStep {
  const float *x, *b, *c;
  float dt, decay, skip;
  std::uint32_t head_dim, state_dim;
  float *state, *u, *y;
};

ZRT_MULTIVERSION void scan_step(const ScanStep& step) {
  const std::uint32_t head_dim = step.head_dim;
  const float* x = step.x;
  float* __restrict u = step.u;
  float* __restrict y = step.y;
  for (std::uint32_t i = 0; i < head_dim; ++i) u[i] = step.dt * x[i];
  std::fill_n(y, head_dim, 0.0f);
  for (std::uint32_t s = 0; s < step.state_dim; ++s) {
    float* __restrict row = step.state + std::uint64_t{s} * head_dim;
    const float b = step.b[s], c = step.c[s], decay = step.decay;
    for (std::uint32_t i = 0; i < head_dim; ++i) {
      row[i] = __builtin_fmaf(b, u[i], row[i] * decay);
      y[i] = __builtin_fmaf(row[i], c, y[i]);
    }
  }
  for (std::uint32_t i = 0; i < head_dim; ++i) y[i] = __builtin_fmaf(step.skip, x[i], y[i]);
}

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmScan>();
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), n_saved = args.dim(kSymbols["dim:k"]), h = args.wg[0];
  const std::uint32_t heads_of_group = c.n_heads / c.n_groups, group = h / heads_of_group;
  // The heads of a group read the same B and C. The first of them saves both.
  const bool saves_group = h % heads_of_group == 0;
  const std::uint32_t inner = c.n_heads * c.head_dim, columns = inner + 2 * c.n_groups * c.state_dim;
  const std::uint32_t x_at = h * c.head_dim, b_at = inner + group * c.state_dim, c_at = b_at + c.n_groups * c.state_dim;
  const std::uint64_t state_size = std::uint64_t{c.state_dim} * c.head_dim;
  float *u = reinterpret_cast<float*>(args.lds), *unused = u + c.head_dim, *guessed = unused + c.head_dim;
  const auto *pos = args.buffer<const std::int32_t>(Operand::pos),
             *slots = args.buffer<const std::int32_t>(Operand::slot);
  const auto entry = [&](std::uint64_t i) {
    return args.buffer<float>(Operand::state) + (i * c.n_heads + h) * state_size;
  };
  const auto apply = [&](const float* row, float raw_dt, float* state, float* y) {
    const float dt = exact::softplus(raw_dt + args.buffer<const float>(Operand::dt_bias)[h]);
    const float decay = exact::exp(dt * args.buffer<const float>(Operand::a)[h]);
    scan_step({row + x_at, row + b_at, row + c_at, dt, decay, args.buffer<const float>(Operand::d)[h], c.head_dim,
               c.state_dim, state, u, y});
  };
  for (std::uint32_t t = 0; t < n;) {
    const auto slot = static_cast<std::uint64_t>(slots[t]);
    const StateRun& of = args.buffer<const StateRun>(Operand::runs)[slot];
    const auto saved = [&](std::uint64_t half, std::uint64_t i) {
      return args.buffer<float>(Operand::saved) + ((slot * 2 + half) * n_saved + i) * (columns + c.n_heads);
    };
    float* state = entry(slot);
    if (pos[t] == 0) std::fill_n(state, state_size, 0.0f);
    for (std::uint32_t i = 0; i < of.n_replayed; ++i) {
      const float* row = saved(of.half, i);
      apply(row, row[columns + h], state, unused);
      if (static_cast<std::uint32_t>(pos[t]) - of.n_replayed + i + 1 == of.save_at)
        std::copy_n(state, state_size, entry(of.save_to));
    }
    for (std::uint32_t i = 0; t < n && static_cast<std::uint64_t>(slots[t]) == slot; ++i, ++t) {
      const float* row = args.buffer<const float>(Operand::x) + std::uint64_t{t} * columns;
      const std::uint64_t at = std::uint64_t{t} * c.n_heads + h;
      const float dt = args.buffer<const float>(Operand::dt)[at];
      if (i >= of.n_certain) {
        float* to = saved(1 - of.half, i - of.n_certain);
        std::copy_n(row + x_at, c.head_dim, to + x_at);
        if (saves_group)
          for (const std::uint32_t first : {b_at, c_at}) std::copy_n(row + first, c.state_dim, to + first);
        to[columns + h] = dt;
      }
      if (i == of.n_certain) state = std::copy_n(state, state_size, guessed) - state_size;
      apply(row, dt, state, args.buffer<float>(Operand::y) + at * c.head_dim);
    }
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_scan;
const CpuKernel kCpuKernel_ssm_scan{
    "SSM_SCAN", run, kSymbols, {{"n_heads"}, {}}, KeyTypes::kNone, [](const std::uint32_t* s) {
      const std::uint64_t head_dim = s[kSymbols["attr:head_dim"]], state_dim = s[kSymbols["attr:state_dim"]];
      return (2 * head_dim + state_dim * head_dim) * sizeof(float);
    }};

}  // namespace zinc_rt::cpu
