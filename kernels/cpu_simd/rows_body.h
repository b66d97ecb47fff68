// Computes RMS_NORM, QUANTIZE, ROPE and GLU of one row on 16 lanes. Each instruction set has a .cpp file that includes
// this file after its lanes header. The orders of sums are those of kernels/cpu/{rms_norm,quantize,rope,glu}.cpp.
#pragma once

#include "kernels/common/act_q8.h"
#include "kernels/common/digits.h"
#include "kernels/common/fold.h"
#include "kernels/common/push.h"
#include "kernels/cpu_simd/lanes_math.h"

namespace zinc_rt::cpu_simd {
namespace {

// Loads the first n floats, where n < 16. All other lanes become `fill`.
ZRT_SIMD Floats load_some(const float* p, std::uint32_t n, float fill) {
  float lane[kLanes];
  for (std::uint32_t l = 0; l < kLanes; ++l) lane[l] = l < n ? p[l] : fill;
  return load(lane);
}
ZRT_SIMD void store_some(float* p, std::uint32_t n, Floats x) {
  float lane[kLanes];
  store(lane, x);
  std::memcpy(p, lane, n * sizeof(float));
}

// Returns the float dot of x with itself. Lanes past the end add +0 * -0, which does not change them.
ZRT_SIMD float sum_of_squares(const float* x, std::uint32_t n) {
  float acc = 0.0f;
  for (std::uint32_t first = 0; first < n; first += 256) {
    const std::uint32_t end = n - first < 256 ? n : first + 256;
    Floats lanes = splat(0.0f);
    std::uint32_t i = first;
    for (; i + kLanes <= end; i += kLanes) lanes = fma(load(x + i), load(x + i), lanes);
    if (i < end) lanes = fma(load_some(x + i, end - i, 0.0f), load_some(x + i, end - i, -0.0f), lanes);
    float lane[kLanes];
    store(lane, lanes);
    acc = acc + fold16(lane);
  }
  return acc;
}

void rms_norm(const float* x, const float* w, float* y, std::uint32_t d, std::uint32_t group, float eps) {
  const float inverse = 1.0f / static_cast<float>(group);
  for (std::uint32_t g = 0; g < d; g += group) {
    const Floats r = rsqrt(splat(__builtin_fmaf(sum_of_squares(x + g, group), inverse, eps)));
    std::uint32_t i = 0;
    for (; i + kLanes <= group; i += kLanes) {
      const Floats v = load(x + g + i) * r;
      store(y + g + i, w != nullptr ? v * load(w + i) : v);
    }
    if (i == group) continue;
    const Floats v = load_some(x + g + i, group - i, 0.0f) * r;
    store_some(y + g + i, group - i, w != nullptr ? v * load_some(w + i, group - i, 0.0f) : v);
  }
}

// Holds the factors that quantize a block: q = round(x * inverse), and the block's d. NaN and infinities are recognized
// by their bits, which are larger than those of every finite number.
struct Scale {
  float inverse, d;
};
template <int kBlock>
ZRT_SIMD std::int32_t largest_bits(const float* x) {
  const Ints mask = splat(0x7FFFFFFF);
  Ints largest = as_ints(load(x)) & mask;
  for (int i = kLanes; i < kBlock; i += kLanes) largest = max(largest, as_ints(load(x + i)) & mask);
  return reduce_max(largest);
}
// Computes the scales of 16 blocks from the bits of their largest magnitudes. Codes range up to `most`.
ZRT_SIMD void find_scales(const std::int32_t* largest, float most, Scale* scale) {
  float amax[kLanes], inverse[kLanes], d[kLanes];
  std::memcpy(amax, largest, sizeof(amax));
  store(inverse, div(splat(most), load(amax)));
  store(d, div(load(amax), splat(most)));
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    const bool is_usable = amax[l] >= 0x1p-100f && amax[l] <= 0x1p120f;
    scale[l].inverse = is_usable ? inverse[l] : 0.0f;
    scale[l].d = is_usable ? d[l] : amax[l] < 0x1p-100f ? 0.0f : __builtin_nanf("");
  }
}
ZRT_SIMD Ints quantize_lanes(const float* x, Scale scale) {
  if (scale.inverse == 0.0f) return splat(0);
  const Floats round = splat(12582912.0f);
  return as_ints(load(x) * splat(scale.inverse) + round) - as_ints(round);
}

ZRT_SIMD void quantize_32(const float* x, ActBlockQ8A32& y, Scale scale) {
  const Ints a = quantize_lanes(x, scale), b = quantize_lanes(x + kLanes, scale);
  y.d = scale.d;
  y.sum = reduce_add(a + b);
  store_i8(y.qs, a);
  store_i8(y.qs + kLanes, b);
}
ZRT_SIMD void quantize_256(const float* x, ActBlockQ8A256& y, Scale scale) {
  y.d = scale.d;
  for (std::uint32_t s = 0; s < 16; ++s) {
    const Ints q = quantize_lanes(x + s * kLanes, scale);
    y.sums[s] = static_cast<std::int16_t>(reduce_add(q));
    store_i8(y.qs + s * kLanes, q);
  }
}
ZRT_SIMD void quantize_digits(const float* x, ActBlockQ16A256& y, Scale scale) {
  y.d = scale.d;
  for (std::uint32_t i = 0; i < 256; i += kLanes) {
    const Ints code = quantize_lanes(x + i, scale), high = shift_right_signed(code + splat(128), 8);
    store_i8(y.high + i, high);
    store_i8(y.low + i, code - shift_left(high, 8));
  }
}

template <int kBlock, class Block>
ZRT_SIMD void quantize_blocks(const float* x, Block* y, std::uint32_t n) {
  constexpr bool kHasDigits = std::is_same_v<Block, ActBlockQ16A256>;
  for (std::uint32_t first = 0; first < n; first += kLanes) {
    const std::uint32_t count = n - first < kLanes ? n - first : kLanes;
    std::int32_t largest[kLanes] = {};
    Scale scale[kLanes];
    for (std::uint32_t b = 0; b < count; ++b) largest[b] = largest_bits<kBlock>(x + (first + b) * kBlock);
    find_scales(largest, kHasDigits ? digits::kMost : 127.0f, scale);
    for (std::uint32_t b = 0; b < count; ++b) {
      if constexpr (kHasDigits)
        quantize_digits(x + (first + b) * kBlock, y[first + b], scale[b]);
      else if constexpr (kBlock == 32)
        quantize_32(x + (first + b) * kBlock, y[first + b], scale[b]);
      else
        quantize_256(x + (first + b) * kBlock, y[first + b], scale[b]);
    }
  }
}

void quantize(const float* x, void* y, std::uint32_t k, DType act) {
  if (act == DType::kQ8A32)
    quantize_blocks<32>(x, static_cast<ActBlockQ8A32*>(y), k / 32);
  else if (act == DType::kQ16A256)
    quantize_blocks<256>(x, static_cast<ActBlockQ16A256*>(y), k / 256);
  else
    quantize_blocks<256>(x, static_cast<ActBlockQ8A256*>(y), k / 256);
}

ZRT_SIMD LanePairs rotate(LanePairs x, LanePairs angle) {
  return {fma(negate(x.second), angle.second, x.first * angle.first),
          fma(x.second, angle.first, x.first * angle.second)};
}

void rope(const float* x, const float* table_row, float* y, std::uint32_t d, std::uint32_t head_dim,
          std::uint32_t n_rot, bool neox) {
  const std::uint32_t half = n_rot / 2;
  for (std::uint32_t h = 0; h < d; h += head_dim) {
    std::uint32_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      const LanePairs angle = load_pairs(table_row + 2 * i);
      if (neox) {
        const LanePairs z = rotate({load(x + h + i), load(x + h + i + half)}, angle);
        store(y + h + i, z.first);
        store(y + h + i + half, z.second);
      } else {
        store_pairs(y + h + 2 * i, rotate(load_pairs(x + h + 2 * i), angle));
      }
    }
    for (; i < half; ++i) {
      const std::uint32_t first = h + (neox ? i : 2 * i), second = h + (neox ? i + half : 2 * i + 1);
      const float a = x[first], b = x[second], c = table_row[2 * i], s = table_row[2 * i + 1];
      y[first] = __builtin_fmaf(-b, s, a * c);
      y[second] = __builtin_fmaf(b, c, a * s);
    }
    for (i = n_rot; i < head_dim; ++i) y[h + i] = x[h + i];
  }
}

// Number of vectors that GLU computes at once. The operations on a single vector depend on each other, so a processor
// could not overlap them.
constexpr int kGluVectors = 4 / kParts;
template <push::Activation kAct>
ZRT_SIMD void glu_lanes(const float* gate, const float* up, float* y, std::uint32_t n) {
  const auto product = [](const auto& g, const auto& u) __attribute__((always_inline)) {
    if constexpr (kAct == push::kSwigluOai)
      return swiglu_oai(g, u);
    else if constexpr (kAct == push::kGeluTanh)
      return gelu_tanh(g) * u;
    else
      return silu(g) * u;
  };
  std::uint32_t i = 0;
  for (; i + kGluVectors * kLanes <= n; i += kGluVectors * kLanes) {
    using Many = Several<Floats, kGluVectors>;
    const auto at = [&](const float* p) __attribute__((always_inline)) {
      return Many::each([&](int j) __attribute__((always_inline)) { return load(p + i + kLanes * j); });
    };
    const Many products = product(at(gate), at(up));
    for (int j = 0; j < kGluVectors; ++j) store(y + i + kLanes * j, products.of[j]);
  }
  for (; i + kLanes <= n; i += kLanes) store(y + i, product(load(gate + i), load(up + i)));
  if (i < n) store_some(y + i, n - i, product(load_some(gate + i, n - i, 0.0f), load_some(up + i, n - i, 0.0f)));
}
void glu(std::uint32_t act, const float* gate, const float* up, float* y, std::uint32_t n) {
  switch (static_cast<push::Activation>(act)) {
    case push::kSilu: return glu_lanes<push::kSilu>(gate, up, y, n);
    case push::kGeluTanh: return glu_lanes<push::kGeluTanh>(gate, up, y, n);
    case push::kSwigluOai: return glu_lanes<push::kSwigluOai>(gate, up, y, n);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
