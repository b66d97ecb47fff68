// The device layout of quantized weights, and functions that read it. A matrix [rows, k] is divided into tiles of 16
// rows. A tile begins where its first row would begin in the file, and takes as many bytes as its rows. Rows behind the
// last whole tile keep the file's layout.
// A tile is its groups of 256 values of k, in order; the last group may be shorter. A group has, for its steps of 32
// values:
// - planes of bits, in the order 8 bits, 4, 2, 1, as far as the format has them. In a plane, the parts of the 32 lanes
//   of a warp follow each other, step by step: 16, 8, 4 or 2 bytes per lane. They become the lane's operand A of
//   mma.m16n8k32: register j holds 4 values of row lane / 4 + 8 * (j % 2), from k = lane % 4 * 4 + 16 * (j / 2) on
// - scales: those bytes of the file's blocks that are not codes, row by row; in 32-value formats step by step, and row
//   by row within a step
// Groups of FIXED16 have another layout (fixed_weights.cuh). Codes have the same number as in the file; kOffset is
// subtracted in the sums.
#pragma once

#include "kernels/common/quant_blocks.h"
#include "kernels/cuda/fixed_weights.cuh"

namespace zinc_rt::cuda {

// The properties of a format. A block of kBlock values takes kBytes in the file. Its scales are kA bytes at offset
// kAOffset and kB bytes at kBOffset. kP8, kP4, kP2, kP1: the number of planes of 8, 4, 2 and 1 bits. kTable: the table
// by which codes are looked up (1: IQ4, 2: FP4, 0: none). kOffset: subtracted from each code. kSub: values per
// sub-scale. kMin: 1 if there are minimums.
template <Format F>
struct Traits;
#define ZRT_FORMAT(F, block, value_block, p8, p4, p2, p1, table, offset, sub, min, a, a_at, b, b_at)           \
  template <>                                                                                                  \
  struct Traits<F> {                                                                                           \
    using Block = block;                                                                                       \
    static constexpr int kBlock = value_block, kBytes = sizeof(block), kP8 = p8, kP4 = p4, kP2 = p2, kP1 = p1; \
    static constexpr int kTable = table, kOffset = offset, kSub = sub, kMin = min;                             \
    static constexpr int kA = a, kAOffset = a_at, kB = b, kBOffset = b_at;                                     \
  }
ZRT_FORMAT(kQ4_0, BlockQ4_0, 32, 0, 1, 0, 0, 0, 8, 32, 0, 2, 0, 0, 0);
ZRT_FORMAT(kQ4_1, BlockQ4_1, 32, 0, 1, 0, 0, 0, 0, 32, 1, 4, 0, 0, 0);
ZRT_FORMAT(kQ5_0, BlockQ5_0, 32, 0, 1, 0, 1, 0, 16, 32, 0, 2, 0, 0, 0);
ZRT_FORMAT(kQ5_1, BlockQ5_1, 32, 0, 1, 0, 1, 0, 0, 32, 1, 4, 0, 0, 0);
ZRT_FORMAT(kQ8_0, BlockQ8_0, 32, 1, 0, 0, 0, 0, 0, 32, 0, 2, 0, 0, 0);
ZRT_FORMAT(kIQ4_NL, BlockIQ4_NL, 32, 0, 1, 0, 0, 1, 0, 32, 0, 2, 0, 0, 0);
ZRT_FORMAT(kMXFP4, BlockMXFP4, 32, 0, 1, 0, 0, 2, 0, 32, 0, 1, 0, 0, 0);
ZRT_FORMAT(kQ2_K, BlockQ2_K, 256, 0, 0, 1, 0, 0, 0, 16, 1, 16, 0, 4, 80);
ZRT_FORMAT(kQ3_K, BlockQ3_K, 256, 0, 0, 1, 1, 0, 4, 16, 0, 12, 96, 2, 108);
ZRT_FORMAT(kQ4_K, BlockQ4_K, 256, 0, 1, 0, 0, 0, 0, 32, 1, 16, 0, 0, 0);
ZRT_FORMAT(kQ5_K, BlockQ5_K, 256, 0, 1, 0, 1, 0, 0, 32, 1, 16, 0, 0, 0);
ZRT_FORMAT(kQ6_K, BlockQ6_K, 256, 0, 1, 1, 0, 0, 32, 16, 0, 16, 192, 2, 208);
ZRT_FORMAT(kIQ4_XS, BlockIQ4_XS, 256, 0, 1, 0, 0, 1, 0, 32, 0, 8, 0, 0, 0);
ZRT_FORMAT(kFixed16, BlockFixed16, 256, 2, 0, 0, 0, 0, 0, 256, 0, 2, 512, 0, 0);  // fixed_weights.cuh has its layout
#undef ZRT_FORMAT

// The type to which the rows of x are quantized for products with a format.
template <Format F>
constexpr ActType kActOf = Traits<F>::kBlock == 32 ? kQ8A32
                           : F == kFixed16         ? kQ16A256
                                                   : kQ8A256;

// Returns the bytes of k values of a row in the file.
template <Format F>
ZRT_CUDA_HD uint64_t row_bytes_of(uint32_t k) {
  return static_cast<uint64_t>(k) / Traits<F>::kBlock * Traits<F>::kBytes;
}
// Returns the offset of the scales in a group of `steps` steps: the size of the planes.
template <Format F>
ZRT_CUDA_HD uint32_t planes_bytes(uint32_t steps) {
  using T = Traits<F>;
  return steps * (512 * T::kP8 + 256 * T::kP4 + 128 * T::kP2 + 64 * T::kP1);
}

// Returns the code of value i of a block in the file's layout.
template <Format F>
__device__ inline uint32_t code_of(const uint8_t* bytes, uint32_t i) {
  const auto& b = *reinterpret_cast<const typename Traits<F>::Block*>(bytes);
  if constexpr (F == kQ8_0) {
    return static_cast<uint8_t>(b.qs[i]);
  } else if constexpr (F == kQ5_0 || F == kQ5_1) {
    return (i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4) | (b.qh[i / 8] >> (i % 8) & 1) << 4;
  } else if constexpr (F == kQ4_K) {
    const uint32_t byte = b.qs[i / 64 * 32 + i % 32];
    return i % 64 < 32 ? byte & 15 : byte >> 4;
  } else if constexpr (F == kQ5_K) {
    const uint32_t byte = b.qs[i / 64 * 32 + i % 32];
    return (i % 64 < 32 ? byte & 15 : byte >> 4) | (b.qh[i % 32] >> (i / 32) & 1) << 4;
  } else if constexpr (F == kQ6_K) {
    const uint32_t half = i / 128, part = i % 128 / 32, j = i % 32;
    const uint32_t low = b.ql[64 * half + part % 2 * 32 + j];
    return (part < 2 ? low & 15 : low >> 4) | (b.qh[32 * half + j] >> (2 * part) & 3) << 4;
  } else if constexpr (F == kQ2_K) {
    return b.qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
  } else if constexpr (F == kQ3_K) {
    return (b.qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3) | (b.hmask[i % 32] >> (i / 32) & 1) << 2;
  } else if constexpr (F == kIQ4_XS) {
    return i % 32 < 16 ? b.qs[i / 32 * 16 + i % 16] & 15 : b.qs[i / 32 * 16 + i % 16] >> 4;
  } else {
    return i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
  }
}

// Returns the integer that a code represents, before scales.
template <Format F>
__device__ __forceinline__ int value_of(uint32_t code) {
  using T = Traits<F>;
  if constexpr (T::kTable != 0) {
    const uint32_t iq4[4] = {0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u};
    const uint32_t fp4[4] = {0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu};
    const uint32_t word = T::kTable == 1 ? iq4[code / 4] : fp4[code / 4];
    return static_cast<int8_t>(word >> (8 * (code % 4)));
  } else if constexpr (T::kP8 != 0) {
    return static_cast<int8_t>(code);
  } else {
    return static_cast<int>(code) - T::kOffset;
  }
}

// Step holds one lane's bits of a step (32 values of k of a tile), by plane.
struct Step {
  uint4 p8;
  uint2 p4;
  uint32_t p2, p1;
};

// Builds a lane's bits of a step from codes. code(j, i) returns the code of value i of register j.
template <Format F, class Code>
__device__ inline Step pack_step(const Code& code) {
  using T = Traits<F>;
  Step s{};
  uint32_t words[4] = {};
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i) {
      const uint32_t c = code(j, i);
      if constexpr (T::kP8 != 0) words[j] |= c << (8 * i);
      if constexpr (T::kP4 != 0) {
        // Registers 0 and 2 share a word, registers 1 and 3 the other one: one in the low, one in the high nibbles of
        // its bytes. In formats with a table, one in the low half and one in the high half of the word.
        const uint32_t at = T::kTable != 0 ? 16 * (j / 2) + 4 * i : 8 * i + 4 * (j / 2);
        (j % 2 == 0 ? s.p4.x : s.p4.y) |= (c & 15) << at;
      }
      if constexpr (T::kP2 != 0) s.p2 |= (T::kP4 != 0 ? c >> 4 & 3 : c & 3) << (8 * i + 2 * j);
      if constexpr (T::kP1 != 0) s.p1 |= (T::kP4 != 0 ? c >> 4 & 1 : c >> 2 & 1) << (4 * j + i);
    }
  if constexpr (T::kP8 != 0) s.p8 = make_uint4(words[0], words[1], words[2], words[3]);
  return s;
}

// FromGlobal and FromShared say where load_step and load_scales read weights: in global memory, where no kernel writes
// them, or in a copy in shared memory.
struct FromGlobal {
  template <class T>
  static __device__ __forceinline__ T read(const T* at) {
    return __ldg(at);
  }
};
struct FromShared {
  template <class T>
  static __device__ __forceinline__ T read(const T* at) {
    return *at;
  }
};

// Loads a lane's bits of step `step` of a group that has `steps` steps.
template <Format F, class From = FromGlobal>
__device__ __forceinline__ Step load_step(const uint8_t* group, uint32_t steps, uint32_t step, uint32_t lane) {
  using T = Traits<F>;
  Step s{};
  if constexpr (T::kP8 != 0) s.p8 = From::read(reinterpret_cast<const uint4*>(group) + step * 32 + lane);
  group += steps * 512 * T::kP8;
  if constexpr (T::kP4 != 0) s.p4 = From::read(reinterpret_cast<const uint2*>(group) + step * 32 + lane);
  group += steps * 256 * T::kP4;
  if constexpr (T::kP2 != 0) s.p2 = From::read(reinterpret_cast<const uint32_t*>(group) + step * 32 + lane);
  group += steps * 128 * T::kP2;
  if constexpr (T::kP1 != 0) s.p1 = From::read(reinterpret_cast<const uint16_t*>(group) + step * 32 + lane);
  return s;
}
// Return the scale bytes of row `row` of a tile as words. `scales` points to the scales of the group. load_scale: for
// one step of a 32-value format. load_scales: both parts (kA and kB bytes) of a 256-value format.
template <Format F, class From = FromGlobal>
__device__ __forceinline__ uint32_t load_scale(const uint8_t* scales, uint32_t step, uint32_t row) {
  const uint8_t* at = scales + (step * 16 + row) * Traits<F>::kA;
  if constexpr (Traits<F>::kA == 4) return From::read(reinterpret_cast<const uint32_t*>(at));
  if constexpr (Traits<F>::kA == 2) return From::read(reinterpret_cast<const uint16_t*>(at));
  return From::read(at);
}
template <Format F, class From = FromGlobal>
__device__ __forceinline__ void load_scales(const uint8_t* scales, uint32_t row, uint32_t* a, uint32_t& b) {
  using T = Traits<F>;
  if constexpr (T::kA == 16) {
    const uint4 v = From::read(reinterpret_cast<const uint4*>(scales) + row);
    a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < T::kA / 4; ++i) a[i] = From::read(reinterpret_cast<const uint32_t*>(scales + row * T::kA) + i);
  }
  b = 0;
  if constexpr (T::kB == 2) b = From::read(reinterpret_cast<const uint16_t*>(scales + 16 * T::kA) + row);
  if constexpr (T::kB == 4) b = From::read(reinterpret_cast<const uint32_t*>(scales + 16 * T::kA) + row);
}
// Stores a lane's bits of step `step` of a group that has `steps` steps.
template <Format F>
__device__ inline void store_step(uint8_t* group, uint32_t steps, uint32_t step, uint32_t lane, const Step& s) {
  using T = Traits<F>;
  if constexpr (T::kP8 != 0) reinterpret_cast<uint4*>(group)[step * 32 + lane] = s.p8;
  group += steps * 512 * T::kP8;
  if constexpr (T::kP4 != 0) reinterpret_cast<uint2*>(group)[step * 32 + lane] = s.p4;
  group += steps * 256 * T::kP4;
  if constexpr (T::kP2 != 0) reinterpret_cast<uint32_t*>(group)[step * 32 + lane] = s.p2;
  group += steps * 128 * T::kP2;
  if constexpr (T::kP1 != 0) reinterpret_cast<uint16_t*>(group)[step * 32 + lane] = static_cast<uint16_t>(s.p1);
}

// Writes one lane's share of one step of a tile's group (at upload, or for rows behind the last tile). `rows` points to
// the group of row 0 in the file's layout, and row r begins r * pitch bytes further. Rows from n_rows on are written as
// zeros.
template <Format F>
__device__ inline void pack_rows(uint8_t* group, const uint8_t* rows, uint64_t pitch, uint32_t n_rows, uint32_t steps,
                                 uint32_t step, uint32_t lane) {
  using T = Traits<F>;
  if constexpr (F == kFixed16) {
    pack_fixed_rows(group, rows, pitch, n_rows, step, lane);
  } else {
    store_step<F>(group, steps, step, lane, pack_step<F>([&](int j, int i) -> uint32_t {
                    const uint32_t row = lane / 4 + j % 2 * 8, k = step * 32 + j / 2 * 16 + lane % 4 * 4 + i;
                    return row < n_rows ? code_of<F>(rows + row * pitch + k / T::kBlock * T::kBytes, k % T::kBlock) : 0;
                  }));
    if (lane >= 16 || (T::kBlock == 256 && step > 0)) return;
    const uint8_t* block = rows + lane * pitch + (T::kBlock == 32 ? step * T::kBytes : 0);
    uint8_t* scales = group + planes_bytes<F>(steps);
    uint8_t* a = scales + (T::kBlock == 32 ? step * 16 + lane : lane) * T::kA;
    for (int i = 0; i < T::kA; ++i) a[i] = lane < n_rows ? block[T::kAOffset + i] : 0;
    for (int i = 0; i < T::kB; ++i) scales[16 * T::kA + lane * T::kB + i] = lane < n_rows ? block[T::kBOffset + i] : 0;
  }
}

// Looks up four 4-bit indexes, in the low half of `sel`, in a table of 16 bytes.
template <int kTable>
__device__ __forceinline__ uint32_t look_up(uint32_t sel) {
  constexpr uint32_t t0 = kTable == 1 ? 0xBFAD9881u : 0x03020100u, t1 = kTable == 1 ? 0xF6EADDCFu : 0x0C080604u,
                     t2 = kTable == 1 ? 0x26190D01u : 0xFDFEFF00u, t3 = kTable == 1 ? 0x71594535u : 0xF4F8FAFCu;
  const uint32_t low = __byte_perm(t0, t1, sel & 0x7777u), high = __byte_perm(t2, t3, sel & 0x7777u);
  return __byte_perm(low, high, 0x3210u | (sel & 0x8888u) >> 1);
}

// Makes the four registers of the lane's operand A from its bits of a step.
template <Format F>
__device__ __forceinline__ void operand(const Step& s, uint32_t (&a)[4]) {
  using T = Traits<F>;
  if constexpr (T::kP8 != 0) {
    a[0] = s.p8.x, a[1] = s.p8.y, a[2] = s.p8.z, a[3] = s.p8.w;
    return;
  }
  if constexpr (T::kTable != 0) {
    a[0] = look_up<T::kTable>(s.p4.x & 0xFFFFu), a[2] = look_up<T::kTable>(s.p4.x >> 16);
    a[1] = look_up<T::kTable>(s.p4.y & 0xFFFFu), a[3] = look_up<T::kTable>(s.p4.y >> 16);
    return;
  }
  if constexpr (T::kP4 != 0) {
    a[0] = s.p4.x & 0x0F0F0F0Fu, a[2] = s.p4.x >> 4 & 0x0F0F0F0Fu;
    a[1] = s.p4.y & 0x0F0F0F0Fu, a[3] = s.p4.y >> 4 & 0x0F0F0F0Fu;
  } else {
    a[0] = a[1] = a[2] = a[3] = 0;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if constexpr (T::kP2 != 0) a[j] |= (s.p2 >> (2 * j) & 0x03030303u) << (T::kP4 != 0 ? 4 : 0);
    if constexpr (T::kP1 != 0) a[j] |= ((s.p1 >> (4 * j) & 15u) * 0x00204081u & 0x01010101u) << (T::kP4 != 0 ? 4 : 2);
  }
}

// KScales holds the scales of one block of a format with blocks of 256 values. A block is the part of one row of W that
// is in one group. sc: the block's sub-scales. m: its minimums. Both are bytes in order, 4 per word. d and dmin: the
// block's two factors.
struct KScales {
  uint32_t sc[4], m[4];
  float d, dmin;
};
// Unpacks them from the words that load_scales() returned.
template <Format F>
__device__ __forceinline__ KScales k_scales(const uint32_t* a, uint32_t b) {
  KScales s{};
  if constexpr (F == kQ4_K || F == kQ5_K) {
    s.d = widen_f16(static_cast<uint16_t>(a[0]));
    s.dmin = widen_f16(static_cast<uint16_t>(a[0] >> 16));
    s.sc[0] = a[1] & 0x3f3f3f3fu;
    s.m[0] = a[2] & 0x3f3f3f3fu;
    s.sc[1] = (a[3] & 0x0f0f0f0fu) | (a[1] >> 2 & 0x30303030u);
    s.m[1] = (a[3] >> 4 & 0x0f0f0f0fu) | (a[2] >> 2 & 0x30303030u);
  } else if constexpr (F == kQ6_K) {
    for (int i = 0; i < 4; ++i) s.sc[i] = a[i];
    s.d = widen_f16(static_cast<uint16_t>(b));
  } else if constexpr (F == kQ2_K) {
    for (int i = 0; i < 4; ++i) s.sc[i] = a[i] & 0x0f0f0f0fu, s.m[i] = a[i] >> 4 & 0x0f0f0f0fu;
    s.d = widen_f16(static_cast<uint16_t>(b));
    s.dmin = widen_f16(static_cast<uint16_t>(b >> 16));
  } else if constexpr (F == kQ3_K) {
    s.sc[0] = (a[0] & 0x0f0f0f0fu) | (a[2] & 0x03030303u) << 4;
    s.sc[1] = (a[1] & 0x0f0f0f0fu) | (a[2] >> 2 & 0x03030303u) << 4;
    s.sc[2] = (a[0] >> 4 & 0x0f0f0f0fu) | (a[2] >> 4 & 0x03030303u) << 4;
    s.sc[3] = (a[1] >> 4 & 0x0f0f0f0fu) | (a[2] >> 6 & 0x03030303u) << 4;
    s.d = widen_f16(static_cast<uint16_t>(b));
  } else {  // IQ4_XS
    s.d = widen_f16(static_cast<uint16_t>(a[0]));
    const uint32_t high = a[0] >> 16;
    for (int j = 0; j < 8; ++j) s.sc[j / 4] |= ((a[1] >> (4 * j) & 15) | (high >> (2 * j) & 3) << 4) << (8 * (j % 4));
  }
  return s;
}
// Returns sub-scale j as a signed number.
template <Format F>
__device__ __forceinline__ int sub_scale(const KScales& s, int j) {
  if constexpr (F == kQ6_K) return static_cast<int>(signed_byte(s.sc[j / 4], j % 4));
  const uint32_t byte = __byte_perm(s.sc[j / 4], 0, 0x4440 + j % 4);
  if constexpr (F == kQ3_K || F == kIQ4_XS) return static_cast<int>(byte) - 32;
  return static_cast<int>(byte);
}

// Return the scale (the minimum) of a block of a 32-value format from the word that load_scale() returned.
template <Format F>
__device__ __forceinline__ float block_scale(uint32_t a) {
  if constexpr (F == kMXFP4) {
    const uint32_t e = a & 0xFF;
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
  }
  return widen_f16(static_cast<uint16_t>(a));
}
__device__ __forceinline__ float block_min(uint32_t a) {
  return widen_f16(static_cast<uint16_t>(a >> 16));
}

// Reads n bytes from an address without alignment into words.
__device__ inline void read_words(const uint8_t* at, int n, uint32_t* words) {
  for (int i = 0; i < n; ++i)
    words[i / 4] = (i % 4 == 0 ? 0 : words[i / 4]) | static_cast<uint32_t>(at[i]) << (8 * (i % 4));
}

// Place finds value i of row r of a matrix: its code, and pointers to its scales. It works for rows in tiles and for
// rows behind the last tile.
template <Format F>
struct Place {
  using T = Traits<F>;
  uint32_t code;
  const uint8_t *a, *b;

  __device__ Place(const uint8_t* w, uint32_t rows, uint32_t k, uint32_t r, uint32_t i) {
    const uint64_t row_bytes = row_bytes_of<F>(k);
    if (r >= rows / 16 * 16) {
      const uint8_t* block = w + r * row_bytes + i / T::kBlock * T::kBytes;
      code = code_of<F>(block, i % T::kBlock);
      a = block + T::kAOffset, b = block + T::kBOffset;
      return;
    }
    const uint32_t in_tile = r % 16, first = i / 256 * 256, steps = k - first < 256 ? (k - first) / 32 : 8;
    const uint8_t* group = w + r / 16 * 16 * row_bytes + 16 * row_bytes_of<F>(first);
    const uint32_t step = (i - first) / 32, in_step = i % 32;
    const uint32_t lane = in_tile % 8 * 4 + in_step % 16 / 4, j = in_tile / 8 + in_step / 16 * 2;
    uint32_t regs[4];
    const Step s = load_step<F>(group, steps, step, lane);
    if constexpr (T::kTable != 0) {
      code = ((j % 2 == 0 ? s.p4.x : s.p4.y) >> (16 * (j / 2) + 4 * (in_step % 4))) & 15;
    } else {
      operand<F>(s, regs);
      code = regs[j] >> (8 * (in_step % 4)) & 0xFF;
    }
    const uint8_t* scales = group + planes_bytes<F>(steps);
    a = scales + (T::kBlock == 32 ? (step * 16 + in_tile) * T::kA : in_tile * T::kA);
    b = scales + 16 * T::kA + in_tile * T::kB;
  }

  // Returns the value as a float, as dequantize_row of kernels/cpu/quant does.
  __device__ float value(uint32_t i) const {
    const float q = static_cast<float>(value_of<F>(code));
    uint32_t words[4] = {}, word_b[1] = {};
    read_words(a, T::kA, words);
    if constexpr (T::kBlock == 32) {
      const float v = block_scale<F>(words[0]) * q;
      return T::kMin != 0 ? v + block_min(words[0]) : v;
    } else {
      if constexpr (T::kB > 0) read_words(b, T::kB, word_b);
      const KScales s = k_scales<F>(words, word_b[0]);
      const int j = static_cast<int>(i % 256 / T::kSub);
      const float scale = s.d * static_cast<float>(sub_scale<F>(s, j)), v = scale * q;
      return T::kMin != 0 ? v - s.dmin * static_cast<float>(s.m[j / 4] >> (8 * (j % 4)) & 0xFF) : v;
    }
  }
};

// Whether a float matrix has its values reordered at upload, so that one load brings 8 values of a lane of the order of
// sums, and the loads of a half warp are adjacent. That applies to F16 and BF16 matrices with more than one row and a
// multiple of 16 columns. lane_place() has the formula: each whole group of 256 is two halves of 128 values; a half
// stores, for each of the 16 lanes of the order of sums, the lane's 8 values in a row.
// A last group of fewer than 256 values, all other matrices, and F32 keep the file's order.
ZRT_CUDA_HD bool has_lanes(int format, uint32_t rows, uint32_t k) {
  return (format == kF16 || format == kBF16) && rows > 1 && k % 16 == 0;
}
// Returns the index in a row of k values at which value i of the file's row is stored.
ZRT_CUDA_HD uint32_t lane_place(uint32_t i, uint32_t k) {
  const uint32_t first = i / 256 * 256, at = i - first;
  return k - first < 256 ? i : first + at / 128 * 128 + at % 16 * 8 + at % 128 / 16;
}
// Loads the 8 values that lane `lane` of the order of sums has in half `part` of a group of n values, two per word.
// Values behind the group's end are zeros.
__device__ __forceinline__ uint4 load_lane_part(const uint16_t* group, uint32_t part, uint32_t n, uint32_t lane) {
  if (n == 256) return __ldg(reinterpret_cast<const uint4*>(group + part * 128) + lane);
  uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (part * 128 + i * 16 < n)
      words[i / 2] |= static_cast<uint32_t>(__ldg(group + part * 128 + i * 16 + lane)) << (16 * (i % 2));
  return make_uint4(words[0], words[1], words[2], words[3]);
}
// Returns one of the two numbers of a word as a float: the lower half for i == 0.
template <Format F>
__device__ __forceinline__ float widen_half(uint32_t word, int i) {
  const auto half = static_cast<uint16_t>(i == 0 ? word : word >> 16);
  if constexpr (F == kF16) return widen_f16(half);
  return i == 0 ? __uint_as_float(word << 16) : __uint_as_float(word & 0xFFFF0000u);
}

// Returns value i of a float matrix, in the order in which it is stored.
template <Format F>
__device__ __forceinline__ float float_at(const void* w, uint64_t i) {
  if constexpr (F == kF32) return static_cast<const float*>(w)[i];
  if constexpr (F == kF16) return widen_f16(static_cast<const uint16_t*>(w)[i]);
  return bf16_to_f32(static_cast<const uint16_t*>(w)[i]);
}

// Returns value i of row r of a matrix of any format, as a float.
template <Format F>
__device__ __forceinline__ float weight_value(const void* w, uint32_t rows, uint32_t k, uint32_t r, uint32_t i) {
  if constexpr (F == kFixed16) {
    return fixed_weight(static_cast<const uint8_t*>(w), rows, k, r, i);
  } else if constexpr (F <= kBF16) {
    return float_at<F>(w, static_cast<uint64_t>(r) * k + (has_lanes(F, rows, k) ? lane_place(i, k) : i));
  } else {
    return Place<F>(static_cast<const uint8_t*>(w), rows, k, r, i).value(i);
  }
}

}  // namespace zinc_rt::cuda
