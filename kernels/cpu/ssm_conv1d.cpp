// This is the CPU reference kernel of the op SSM_CONV1D. It computes a causal depthwise convolution with `width` taps
// over each channel, then adds the channel's bias if there is one, then applies act (push::ConvActivation: silu or
// nothing). The state keeps the last width - 1 inputs.
//   y[t][c] = act(sum over i of w[c][i] * x[t - width + 1 + i][c] + bias[c]); the last tap is the token itself
// A token at position 0 begins with a state of zeros. Tokens of one slot are neighbours, in order of their positions. A
// workgroup computes a tile of channels for all tokens.
// Guesses (kernels/common/state_run.h): first, runs[slot].n_replayed saved rows go through the state. Then the slot's
// first n_certain rows of x change it. The rows after them are guesses: they go through a copy of the state, and are
// saved, row j behind the certain ones as saved[slot][j].
// Shapes: x [n, c], conv_w [c, width], bias [c], pos, slot [n], state [s, taps = width - 1, c] (oldest first),
//   runs [slots, 5], saved [slots, k, c], y [n, c].
// Order of sums: acc = w0 * x0, then fma tap by tap, oldest first, then + bias; tokens in order (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/common/state_run.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmConv1d;
constexpr NameList kSymbols{"dim:n", "dim:c", "dim:k", "attr:taps"};

constexpr std::uint32_t kTile = 256;

ZRT_MULTIVERSION void conv_step(const ConvStep& step) {
  for (std::uint32_t ch = 0; ch < step.n; ++ch) {
    const float sum = conv_channel(step, ch);
    step.y[ch] = step.act == push::kConvSilu ? exact::silu(sum) : sum;
  }
}

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmConv1d>();
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), channels = args.dim(kSymbols["dim:c"]);
  const std::uint32_t begin = args.wg[0] * kTile, width = std::min(channels, begin + kTile) - begin;
  const float *x = args.buffer<const float>(Operand::x) + begin,
              *w = args.buffer<const float>(Operand::conv_w) + std::uint64_t{begin} * c.width,
              *bias = args.buffer<const float>(Operand::bias);
  if (bias != nullptr) bias += begin;
  const auto act = static_cast<push::ConvActivation>(c.act);
  const auto *pos = args.buffer<const std::int32_t>(Operand::pos),
             *slots = args.buffer<const std::int32_t>(Operand::slot);
  float* y = args.buffer<float>(Operand::y) + begin;
  const auto step = args.set != nullptr && args.set->rows != nullptr ? args.set->rows->conv_step : conv_step;
  float *guessed = reinterpret_cast<float*>(args.lds), *unused = guessed + std::uint64_t{c.taps} * kTile;
  for (std::uint32_t t = 0; t < n;) {
    const auto slot = static_cast<std::uint64_t>(slots[t]);
    const StateRun& of = args.buffer<const StateRun>(Operand::runs)[slot];
    const auto entry = [&](std::uint64_t i) -> float* {
      if (c.taps == 0) return nullptr;
      return args.buffer<float>(Operand::state) + i * c.taps * channels + begin;
    };
    const auto saved = [&](std::uint64_t i) {
      return args.buffer<float>(Operand::saved) + (slot * args.dim(kSymbols["dim:k"]) + i) * channels + begin;
    };
    // Copies the tile's channels of a state whose rows are `from_pitch` floats apart.
    const auto copy = [&](const float* from, std::uint64_t from_pitch, float* to, std::uint64_t to_pitch) {
      for (std::uint64_t i = 0; i < c.taps; ++i) std::copy_n(from + i * from_pitch, width, to + i * to_pitch);
    };
    float* state = entry(slot);
    if (pos[t] == 0)
      for (std::uint64_t i = 0; i < c.taps; ++i) std::fill_n(state + i * channels, width, 0.0f);
    for (std::uint32_t i = 0; i < of.n_replayed; ++i) {
      step({saved(i), w, bias, c.width, c.taps, width, channels, act, state, unused});
      if (static_cast<std::uint32_t>(pos[t]) - of.n_replayed + i + 1 == of.save_at)
        copy(state, channels, entry(of.save_to), channels);
    }
    std::uint32_t pitch = channels;
    for (std::uint32_t i = 0; t < n && static_cast<std::uint64_t>(slots[t]) == slot; ++i, ++t) {
      const float* row = x + std::uint64_t{t} * channels;
      if (i >= of.n_certain) std::copy_n(row, width, saved(i - of.n_certain));
      if (i == of.n_certain) copy(state, channels, guessed, kTile), state = guessed, pitch = kTile;
      step({row, w, bias, c.width, c.taps, width, pitch, act, state, y + std::uint64_t{t} * channels});
    }
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_conv1d;
const CpuKernel kCpuKernel_ssm_conv1d{
    "SSM_CONV1D", run, kSymbols, {{"c", kTile}, {}}, KeyTypes::kNone, [](const std::uint32_t* s) {
      return (std::uint64_t{s[kSymbols["attr:taps"]]} + 1) * kTile * sizeof(float);
    }};

}  // namespace zinc_rt::cpu
