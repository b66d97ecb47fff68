// kernels/sm_90/ptx.cuh on the host: the same functions, by the instructions' definitions.
#pragma once

#include "kernels/common/half.h"

#define ZRT_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(::cuda_sim::here.shared)

namespace zinc_rt::cuda {

// Kernels run one after another.
inline void wait_for_inputs() {}
inline void let_next_start() {}

inline float widen_f16(uint16_t half) {
  return f16_to_f32(half);
}
inline float2 widen_f16_pair(uint32_t pair) {
  return {f16_to_f32(static_cast<uint16_t>(pair)), f16_to_f32(static_cast<uint16_t>(pair >> 16))};
}

// Nothing reads a copy before the wait for it, so it may be made at once.
inline void copy_16(void* to, const void* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
    ::cuda_sim::stop("a copy of 16 bytes that is not aligned to 16");
  std::memcpy(to, from, 16);
}
inline void copy_16_or_zeros(void* to, const void* from, bool is_copy) {
  if (is_copy)
    copy_16(to, from);
  else
    std::memset(to, 0, 16);
}
inline void copy_4(void* to, const void* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % 4 != 0 || reinterpret_cast<std::uintptr_t>(from) % 4 != 0)
    ::cuda_sim::stop("a copy of 4 bytes that is not aligned to 4");
  std::memcpy(to, from, 4);
}
inline void wait_for_copies() {}
inline void end_copy_batch() {}
template <int kLeft>
inline void wait_for_copy_batches() {}

// c += A B of a warp, by the layout of mma.m16n8: lane l has, of A, rows l / 4 and l / 4 + 8 and four values of k from
// l % 4 * 4 on, and the same 16 values further; of B column l / 4 and the same values of k; of C rows l / 4 and l / 4 +
// 8, columns l % 4 * 2 and the next. kQuads: fours of k, 8 or 4.
template <bool kSigned, int kQuads>
inline void mma(int (&c)[4], const ::cuda_sim::Words& own) {
  const auto* lanes = ::cuda_sim::exchange(0xFFFFFFFFu, own);
  const std::uint32_t lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (int quad = 0; quad < kQuads; ++quad) {
      const std::uint32_t a = lanes[row * 4 + quad % 4].w[i / 2 + quad / 4 * 2],
                          b = lanes[column * 4 + quad % 4].w[4 + quad / 4];
      for (int byte = 0; byte < 4; ++byte) {
        const auto code = static_cast<std::uint8_t>(a >> (8 * byte));
        c[i] += (kSigned ? static_cast<std::int8_t>(code) : static_cast<int>(code)) *
                static_cast<std::int8_t>(b >> (8 * byte));
      }
    }
  }
}
template <bool kSigned>
inline void mma32(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
  mma<kSigned, 8>(c, {{a[0], a[1], a[2], a[3], b.x, b.y}});
}
template <bool kSigned>
inline void mma16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  mma<kSigned, 4>(c, {{a0, a1, 0, 0, b}});
}
// The same of f16 values: a lane has, of A, rows l / 4 and l / 4 + 8, values of k from l % 4 * 2 on, then those 8
// further; of B column l / 4 and the same values of k.
inline void mma16_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const auto* lanes = ::cuda_sim::exchange(0xFFFFFFFFu, {{a[0], a[1], a[2], a[3], b0, b1}});
  const std::uint32_t lane = threadIdx.x % 32;
  float2 x[2][8], y[2][8];  // of both rows and columns, by pairs of k
  for (std::uint32_t i = 0; i < 2; ++i)
    for (std::uint32_t pair = 0; pair < 8; ++pair) {
      x[i][pair] = widen_f16_pair(lanes[lane / 4 * 4 + pair % 4].w[i + pair / 4 * 2]);
      y[i][pair] = widen_f16_pair(lanes[(lane % 4 * 2 + i) * 4 + pair % 4].w[4 + pair / 4]);
    }
  for (int i = 0; i < 4; ++i) {
    double sum = c[i];
    for (int pair = 0; pair < 8; ++pair) {
      const float2 of_a = x[i / 2][pair], of_b = y[i % 2][pair];
      sum += static_cast<double>(of_a.x) * of_b.x + static_cast<double>(of_a.y) * of_b.y;
    }
    c[i] = static_cast<float>(sum);
  }
}
// Four matrices of 8 by 8 values: lane l points to row l % 8 of matrix l / 8.
inline const ::cuda_sim::Words* exchange_rows(const void* own) {
  if (reinterpret_cast<std::uintptr_t>(own) % 16 != 0) ::cuda_sim::stop("a row of a matrix that is not aligned to 16");
  const auto at = reinterpret_cast<std::uint64_t>(own);
  return ::cuda_sim::exchange(0xFFFFFFFFu, {{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32)}});
}
inline std::uint32_t value_of(const ::cuda_sim::Words& row, std::uint32_t at) {
  return reinterpret_cast<const std::uint16_t*>(static_cast<std::uint64_t>(row.w[1]) << 32 | row.w[0])[at];
}
inline void load_matrices(uint32_t (&m)[4], const void* row) {
  const auto* rows = exchange_rows(row);
  const std::uint32_t of = threadIdx.x % 32 / 4, at = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) m[i] = value_of(rows[i * 8 + of], at) | value_of(rows[i * 8 + of], at + 1) << 16;
}
inline void load_matrices_transposed(uint32_t (&m)[4], const void* row) {
  const auto* rows = exchange_rows(row);
  const std::uint32_t of = threadIdx.x % 4 * 2, at = threadIdx.x % 32 / 4;
  for (int i = 0; i < 4; ++i) m[i] = value_of(rows[i * 8 + of], at) | value_of(rows[i * 8 + of + 1], at) << 16;
}

inline uint32_t f16_pair(float low, float high) {
  return f32_to_f16(low) | static_cast<std::uint32_t>(f32_to_f16(high)) << 16;
}
inline float approx_exp2(float x) {
  return std::exp2(x);
}
inline float approx_rcp(float x) {
  return 1.0f / x;
}

}  // namespace zinc_rt::cuda
