// This is the CPU reference kernel of the op SSM_CONV1D. It computes a causal depthwise convolution with `width` taps
// over each channel, then silu. The state keeps the last width - 1 inputs.
//   y[t][c] = silu(sum over i of w[c][i] * x[t - width + 1 + i][c]); the last tap is the token itself
// A token at position 0 begins with a state of zeros. Tokens of one slot are in order of their positions. A workgroup
// computes a tile of channels for all tokens.
// Shapes: x [n, c], conv_w [c, width], pos, slot [n], state [s, taps = width - 1, c] (oldest first), y [n, c].
// Order of sums: acc = w0 * x0, then fma tap by tap, oldest first; tokens in order (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmConv1d;
constexpr NameList kSymbols{"dim:n", "dim:c"};

constexpr std::uint32_t kTile = 256;

ZRT_MULTIVERSION void conv_step(const ConvStep& step) {
  for (std::uint32_t ch = 0; ch < step.n; ++ch) step.y[ch] = exact::silu(conv_channel(step, ch));
}

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmConv1d>();
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), channels = args.dim(kSymbols["dim:c"]);
  const std::uint32_t begin = args.wg[0] * kTile, end = std::min(channels, begin + kTile);
  const float *x = args.buffer<const float>(Operand::x), *w = args.buffer<const float>(Operand::conv_w);
  const auto step = args.set != nullptr && args.set->rows != nullptr ? args.set->rows->conv_step : conv_step;
  for (std::uint32_t t = 0; t < n; ++t) {
    const auto slot = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::slot)[t]);
    float* state = args.buffer<float>(Operand::state) + slot * c.taps * channels;
    if (args.buffer<const std::int32_t>(Operand::pos)[t] == 0)
      for (std::uint32_t i = 0; i < c.taps; ++i)
        std::fill(state + std::uint64_t{i} * channels + begin, state + std::uint64_t{i} * channels + end, 0.0f);
    const std::uint64_t at = std::uint64_t{t} * channels + begin;
    step({x + at, w + std::uint64_t{begin} * c.width, c.width, c.taps, end - begin, channels, state + begin,
          args.buffer<float>(Operand::y) + at});
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_conv1d;
const CpuKernel kCpuKernel_ssm_conv1d{"SSM_CONV1D", run, kSymbols, {{"c", kTile}, {}}};

}  // namespace zinc_rt::cpu
