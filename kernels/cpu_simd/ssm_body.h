// Computes the steps of SSM_DELTA_NET and SSM_CONV1D on 16 lanes. Each instruction set has a .cpp file that includes
// this file after its lanes header. The orders of sums are those of kernels/cpu/{ssm_delta_net,ssm_conv1d}.cpp. A lane
// computes a column (SSM_DELTA_NET) or a channel (SSM_CONV1D). Columns and channels are independent of each other.
#pragma once

#include "kernels/cpu/ops.h"
#include "kernels/cpu_simd/lanes_math.h"

namespace zinc_rt::cpu_simd {
namespace {

// Computes columns [at, at + 16 * kColumns) of a DeltaStep. Their sums stay in registers. S is written only once, so g
// S is computed a second time for the update.
template <int kColumns>
__attribute__((noinline)) void delta_columns(const cpu::DeltaStep& step, std::uint64_t at) {
  const auto column = [at](float* p, int c)
                          __attribute__((always_inline)) { return p + at + kLanes * static_cast<std::uint64_t>(c); };
  const std::uint64_t k_dim = step.k_dim, pitch = step.v_dim;
  const Floats decay = splat(step.decay), beta = splat(step.beta);
  Floats u[kColumns], y[kColumns];
  for (int c = 0; c < kColumns; ++c) u[c] = splat(0.0f);
  float* row = step.state;
  for (std::uint64_t i = 0; i < k_dim; ++i, row += pitch) {
    const Floats k = splat(step.k[i]);
    for (int c = 0; c < kColumns; ++c) u[c] = fma(k, load(column(row, c)) * decay, u[c]);
  }
  for (int c = 0; c < kColumns; ++c) {
    u[c] = (load(step.v + at + kLanes * static_cast<std::uint64_t>(c)) - u[c]) * beta;
    y[c] = splat(0.0f);
  }
  row = step.state;
  for (std::uint64_t i = 0; i < k_dim; ++i, row += pitch) {
    const Floats k = splat(step.k[i]), q = splat(step.q[i]);
    for (int c = 0; c < kColumns; ++c) {
      const Floats s = fma(k, u[c], load(column(row, c)) * decay);
      store(column(row, c), s);
      y[c] = fma(q, s, y[c]);
    }
  }
  for (int c = 0; c < kColumns; ++c) store(column(step.y, c), y[c]);
}

void delta_step(const cpu::DeltaStep& step) {
  const std::uint32_t v_dim = step.v_dim;
  std::uint32_t j = 0;
  constexpr int kColumns = columns_of(2, kSums);
  for (; j + kColumns * kLanes <= v_dim; j += kColumns * kLanes) delta_columns<kColumns>(step, j);
  for (; j + kLanes <= v_dim; j += kLanes) delta_columns<1>(step, j);
  for (; j < v_dim; ++j) {
    float u = 0.0f, y = 0.0f;
    for (std::uint32_t i = 0; i < step.k_dim; ++i)
      u = __builtin_fmaf(step.k[i], step.state[i * v_dim + j] * step.decay, u);
    u = (step.v[j] - u) * step.beta;
    for (std::uint32_t i = 0; i < step.k_dim; ++i) {
      float& s = step.state[i * v_dim + j];
      s = __builtin_fmaf(step.k[i], u, s * step.decay);
      y = __builtin_fmaf(step.q[i], s, y);
    }
    step.y[j] = y;
  }
}

// Computes channels [ch, ch + 16) of a ConvStep.
ZRT_SIMD void conv_lanes(const cpu::ConvStep& step, std::uint32_t ch) {
  const std::uint64_t pitch = step.pitch;
  const float* w = step.w + std::uint64_t{ch} * step.width;
  float* state = step.taps > 0 ? step.state + ch : nullptr;
  const Floats now = load(step.x + ch);
  const auto stride = static_cast<std::int32_t>(step.width);
  Floats acc = gather(w, stride) * (step.taps > 0 ? load(state) : now);
  for (std::uint32_t i = 1; i < step.width; ++i)
    acc = fma(gather(w + i, stride), i < step.taps ? load(state + i * pitch) : now, acc);
  for (std::uint32_t i = 0; i + 1 < step.taps; ++i) store(state + i * pitch, load(state + (i + 1) * pitch));
  if (step.taps > 0) store(state + (step.taps - 1) * pitch, now);
  if (step.bias != nullptr) acc = acc + load(step.bias + ch);
  store(step.y + ch, step.act == push::kConvSilu ? silu(acc) : acc);
}

void conv_step(const cpu::ConvStep& step) {
  std::uint32_t ch = 0;
  for (; ch + kLanes <= step.n; ch += kLanes) conv_lanes(step, ch);
  for (; ch < step.n; ++ch) {
    float lane[kLanes] = {cpu::conv_channel(step, ch)};
    if (step.act == push::kConvSilu) store(lane, silu(load(lane)));
    step.y[ch] = lane[0];
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
