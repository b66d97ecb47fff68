// SSM_CONV1D: a causal depthwise convolution, a bias of each channel, then silu or nothing. Its state is each slot's last
// `taps` inputs. The order of sums is that of kernels/cpu/ssm_conv1d.cpp, which also says what saved rows and guesses
// are.
// Grid: (tiles of channels, tokens). Each thread computes one channel. A token's sum needs the `taps` inputs before it.
// If all of them are tokens of this step, the token's own workgroup computes it. The workgroup of a slot's first token in
// this step does the rest: it replays, computes the tokens that need the stored state, saves guesses, and alone changes
// the state.
#include "kernels/common/state_run.h"
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void ssm_conv1d(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::SsmConv1d>();
  const uint32_t n = args.dim(symbol::SsmConv1d::rows), channels = args.dim(symbol::SsmConv1d::c),
                 ch = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y;
  const int32_t* slot = args.buffer<const int32_t>(binding::SsmConv1d::slot);
  if (first >= n || ch >= channels) return;
  const float *w = args.buffer<const float>(binding::SsmConv1d::conv_w) + static_cast<uint64_t>(ch) * c.width,
              *x = args.buffer<const float>(binding::SsmConv1d::x) + ch,
              *bias = args.buffer<const float>(binding::SsmConv1d::bias);
  const auto input = [&](uint32_t t) { return x[static_cast<uint64_t>(t) * channels]; };
  const auto store_y = [&](uint32_t t, float sum) {
    if (bias != nullptr) sum = sum + bias[ch];
    args.buffer<float>(binding::SsmConv1d::y)[static_cast<uint64_t>(t) * channels + ch] =
        c.act == push::kConvSilu ? exact::silu(sum) : sum;
  };
  // Tokens of a slot are neighbours, so all between two tokens of the slot are its tokens, too.
  if (first >= c.taps && c.taps > 0 && slot[first - c.taps] == slot[first]) {
    constexpr uint32_t kAhead = 4;  // taps whose loads are issued before the first sum
    float sum = 0.0f;
    for (uint32_t begin = 0; begin < c.width; begin += kAhead) {
      float weight[kAhead], value[kAhead];
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i)
        if (begin + i < c.width) weight[i] = w[begin + i], value[i] = input(first - c.taps + begin + i);
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i)
        if (begin + i < c.width) sum = begin + i == 0 ? weight[i] * value[i] : __fmaf_rn(weight[i], value[i], sum);
    }
    store_y(first, sum);
    return;
  }
  if (first > 0 && slot[first - 1] == slot[first]) return;

  const int32_t* pos = args.buffer<const int32_t>(binding::SsmConv1d::pos);
  const auto run = args.buffer<const zinc_rt::StateRun>(binding::SsmConv1d::runs)[slot[first]];
  const auto entry = [&](uint32_t i) {
    return args.buffer<float>(binding::SsmConv1d::state) + static_cast<uint64_t>(i) * c.taps * channels + ch;
  };
  const auto row = [&](float* from, uint32_t i) -> float& { return from[static_cast<uint64_t>(i) * channels]; };
  float *stored = entry(slot[first]),
        *saved = args.buffer<float>(binding::SsmConv1d::saved) +
                 static_cast<uint64_t>(slot[first]) * args.dim(symbol::SsmConv1d::k) * channels + ch;
  if (pos[first] == 0)
    for (uint32_t i = 0; i < c.taps; ++i) row(stored, i) = 0.0f;
  for (uint32_t i = 0; i < run.n_replayed; ++i) {
    for (uint32_t j = 0; j + 1 < c.taps; ++j) row(stored, j) = row(stored, j + 1);
    if (c.taps > 0) row(stored, c.taps - 1) = row(saved, i);
    if (static_cast<uint32_t>(pos[first]) - run.n_replayed + i + 1 == run.save_at)
      for (uint32_t j = 0; j < c.taps; ++j) row(entry(run.save_to), j) = row(stored, j);
  }
  // The inputs of the run in order: input i is row i of the state, or token i - taps of the run.
  const auto input_of_run = [&](uint32_t i) { return i < c.taps ? row(stored, i) : input(first + i - c.taps); };
  uint32_t n_rows = 0;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t, ++n_rows) {
    if (n_rows >= run.n_certain) row(saved, n_rows - run.n_certain) = input(t);
    if (n_rows >= c.taps && c.taps > 0) continue;
    float sum = w[0] * input_of_run(n_rows);
    for (uint32_t i = 1; i < c.width; ++i) sum = __fmaf_rn(w[i], input_of_run(n_rows + i), sum);
    store_y(t, sum);
  }
  // Row i of the state becomes an input that lies behind it, so ascending order reads no row that has changed.
  const uint32_t n_certain = min(n_rows, run.n_certain);
  for (uint32_t i = 0; n_certain > 0 && i < c.taps; ++i) row(stored, i) = input_of_run(n_certain + i);
}
