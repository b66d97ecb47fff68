// kernels/cuda/ptx.cuh on the host: the same functions, by the instructions' definitions.
#pragma once

#include "kernels/common/half.h"
#include "kernels/cuda/args.h"

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

inline uint32_t signed_byte(uint32_t word, uint32_t i) {
  return static_cast<uint32_t>(static_cast<std::int8_t>(word >> (8 * i)));
}

inline uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);  // where a highest bit is set, it is as wrong as on a GPU
}

inline void prefetch_line(const void* at) {
  static_cast<void>(*static_cast<const volatile char*>(at));  // for who watches addresses
}

inline uint4 stream_16(const void* at) {
  return *static_cast<const uint4*>(at);
}
inline uint16_t stream_2(const void* at) {
  return *static_cast<const uint16_t*>(at);
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
template <bool kSigned, int kQuads, bool kSignedB = true>
inline void mma(int (&c)[4], const ::cuda_sim::Words& own) {
  const auto* lanes = ::cuda_sim::exchange(0xFFFFFFFFu, own);
  const std::uint32_t lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (int quad = 0; quad < kQuads; ++quad) {
      const std::uint32_t a = lanes[row * 4 + quad % 4].w[i / 2 + quad / 4 * 2],
                          b = lanes[column * 4 + quad % 4].w[4 + quad / 4];
      for (int byte = 0; byte < 4; ++byte) {
        const auto code = static_cast<std::uint8_t>(a >> (8 * byte)),
                   code_b = static_cast<std::uint8_t>(b >> (8 * byte));
        c[i] += (kSigned ? static_cast<std::int8_t>(code) : static_cast<int>(code)) *
                (kSignedB ? static_cast<std::int8_t>(code_b) : static_cast<int>(code_b));
      }
    }
  }
}
template <bool kSigned, bool kSignedB = true>
inline void mma32(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
  mma<kSigned, 8, kSignedB>(c, {{a[0], a[1], a[2], a[3], b.x, b.y}});
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

inline float max_or_nan(float a, float b) {
  return a != a ? a : b != b ? b : max(a, b);
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

inline uint32_t bf16_pair(float low, float high) {
  return static_cast<uint32_t>(f32_to_bf16(low)) | static_cast<uint32_t>(f32_to_bf16(high)) << 16;
}
inline float2 widen_bf16_pair(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000u)};
}
// Rounded twice, to float and to bf16.
inline uint32_t fma_bf16_pair(uint32_t a, uint32_t b, uint32_t c) {
  const float2 x = widen_bf16_pair(a), y = widen_bf16_pair(b), z = widen_bf16_pair(c);
  return bf16_pair(__fmaf_rn(x.x, y.x, z.x), __fmaf_rn(x.y, y.y, z.y));
}

#define ZRT_HAS_WGMMA 1

// A barrier in its 8 bytes: arrivals left in this phase, arrivals of a phase, the phase's parity, bytes that it waits
// for.
struct Barrier {
  std::uint16_t left;
  std::uint16_t count : 15, parity : 1;
  std::int32_t bytes;

  static Barrier& of(uint64_t* at) { return *reinterpret_cast<Barrier*>(at); }
  void end_if_complete() {
    if (left == 0 && bytes == 0) left = count, parity ^= 1;
  }
};
static_assert(sizeof(Barrier) == 8);
inline void barrier_init(uint64_t* barrier, uint32_t count) {
  Barrier& b = Barrier::of(barrier);
  b.left = static_cast<std::uint16_t>(count);
  b.count = count & 0x7FFF;
  b.parity = 0, b.bytes = 0;
}
inline void publish_barriers() {}
inline void barrier_arrive(uint64_t* barrier) {
  Barrier& b = Barrier::of(barrier);
  if (b.left == 0) ::cuda_sim::stop("more arrivals at a barrier than it counts");
  --b.left;
  b.end_if_complete();
}
inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
  Barrier::of(barrier).bytes += static_cast<std::int32_t>(bytes);
  barrier_arrive(barrier);
}
inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
  while (Barrier::of(barrier).parity == parity) ::cuda_sim::yield();
}
inline void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0 ||
      bytes % 16 != 0)
    ::cuda_sim::stop("a bulk copy that is not aligned to 16");
  Barrier& b = Barrier::of(barrier);
  if (b.bytes < static_cast<std::int32_t>(bytes)) ::cuda_sim::stop("a bulk copy of more than its barrier expects");
  ::cuda_sim::copy_later({to, from, bytes, barrier}, [](const ::cuda_sim::Copy& copy) {
    Barrier& of_copy = Barrier::of(copy.barrier);
    std::memcpy(copy.to, copy.from, copy.bytes);
    of_copy.bytes -= static_cast<std::int32_t>(copy.bytes);
    of_copy.end_if_complete();
  });
}
inline void tensor_copy(void* to, const TensorMap& map, uint32_t x, uint32_t y, uint32_t z, uint64_t* barrier) {
  const auto& tensor = reinterpret_cast<const ::cuda_sim::Tensor&>(map);
  if (reinterpret_cast<std::uintptr_t>(to) % 1024 != 0) ::cuda_sim::stop("a box that is not aligned to 1,024");
  const std::int32_t bytes = static_cast<std::int32_t>(tensor.box_rows * 128);
  Barrier& b = Barrier::of(barrier);
  if (b.bytes < bytes) ::cuda_sim::stop("a box of more bytes than its barrier expects");
  for (std::uint32_t row = 0; row < tensor.box_rows; ++row)
    for (std::uint32_t i = 0; i < 64; ++i) {
      const bool is_inside = x + i < tensor.dims[0] && y + row < tensor.dims[1] && z < tensor.dims[2];
      const std::uint8_t* from = tensor.at + z * tensor.strides[1] + (y + row) * tensor.strides[0] + (x + i) * 2;
      auto* place = static_cast<std::uint8_t*>(to) + row * 128 + ((i / 8) ^ row % 8) * 16 + i % 8 * 2;
      if (is_inside)
        std::memcpy(place, from, 2);
      else
        std::memset(place, 0, 2);
    }
  b.bytes -= bytes;
  b.end_if_complete();
}
template <int kRegisters>
inline void give_registers() {}
template <int kRegisters>
inline void take_registers() {}

inline uint64_t wgmma_operand(const void* rows) {
  return reinterpret_cast<std::uintptr_t>(rows) >> 4;
}
inline void wgmma_begin() {}
inline void wgmma_end_batch() {}
template <int kLeft>
inline void wgmma_wait_for_batches() {}
// A word of a row of an operand.
inline std::uint32_t operand_word(uint64_t operand, std::uint32_t row, std::uint32_t index) {
  std::uintptr_t at = (operand << 4) + row * 128 + index * 4;
  at ^= (at >> 7 & 7) << 4;
  std::uint32_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(at), 4);
  return word;
}
// Two values of it, from value `first` on.
inline float2 operand_pair(uint64_t operand, std::uint32_t row, std::uint32_t first) {
  return widen_bf16_pair(operand_word(operand, row, first / 2));
}
// d of a lane; a(second, pair): two values of its first or second row of A.
template <int kRegisters, class A>
void multiply_add(float (&d)[kRegisters], const A& a, uint64_t b, bool adds) {
  for (int i = 0; i < kRegisters; ++i) {
    const std::uint32_t column = static_cast<std::uint32_t>(i) / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    float sum = adds ? d[i] : 0.0f;
    for (std::uint32_t pair = 0; pair < 8; ++pair) {
      const float2 w = a(i % 4 / 2, pair), x = operand_pair(b, column, pair * 2);
      sum += w.x * x.x;
      sum += w.y * x.y;
    }
    d[i] = sum;
  }
}
// A warp at a time: only the operands in shared memory are the warpgroup's.
template <int kRegisters>
inline void wgmma(float (&d)[kRegisters], const uint32_t (&a)[4], uint64_t b, bool adds) {
  const auto* lanes = ::cuda_sim::exchange(0xFFFFFFFFu, {{a[0], a[1], a[2], a[3]}});
  const std::uint32_t row = threadIdx.x % 32 / 4;
  multiply_add(
      d,
      [&](std::uint32_t second, std::uint32_t pair) {
        return widen_bf16_pair(lanes[row * 4 + pair % 4].w[second + pair / 4 * 2]);
      },
      b, adds);
}
// The same of bytes, unsigned or signed ones of A and signed ones of B.
template <bool kSigned, int kRegisters>
inline void wgmma_bytes(int (&d)[kRegisters], const uint32_t (&a)[4], uint64_t b, bool adds) {
  const auto* lanes = ::cuda_sim::exchange(0xFFFFFFFFu, {{a[0], a[1], a[2], a[3]}});
  const std::uint32_t row = threadIdx.x % 32 / 4;
  for (int i = 0; i < kRegisters; ++i) {
    const std::uint32_t column = static_cast<std::uint32_t>(i) / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    int sum = adds ? d[i] : 0;
    for (std::uint32_t quad = 0; quad < 8; ++quad) {
      const std::uint32_t w = lanes[row * 4 + quad % 4].w[i % 4 / 2 + quad / 4 * 2], x = operand_word(b, column, quad);
      for (int byte = 0; byte < 4; ++byte) {
        const auto code = static_cast<std::uint8_t>(w >> (8 * byte));
        sum += (kSigned ? static_cast<std::int8_t>(code) : int{code}) * static_cast<std::int8_t>(x >> (8 * byte));
      }
    }
    d[i] = sum;
  }
}
template <int kRegisters>
inline void wgmma_shared(float (&d)[kRegisters], uint64_t a, uint64_t b, bool adds) {
  const std::uint32_t row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  multiply_add(
      d, [&](std::uint32_t second, std::uint32_t pair) { return operand_pair(a, row + 8 * second, pair * 2); }, b,
      adds);
}

}  // namespace zinc_rt::cuda
