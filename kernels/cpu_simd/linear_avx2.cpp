// The panel kernel for AVX2. Two kinds of panel:
//   bytes  codes are unsigned and small (value + kOffset); vpmaddubsw adds pairs in 16 bits, kSteps of them before they
//          could overflow; kOffset * sum(x) is taken off exactly
//   words  codes use all of a signed byte; vpmaddwd on 16-bit codes, exact for every input
// Everything in this file is static: it is compiled for AVX2, and no copy of it may serve code that is not.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/common/act_q8.h"
#include "kernels/cpu/quant/blocks.h"
#include "kernels/cpu/quant/k_scales.h"
#include "kernels/cpu/quant/value_tables.h"
#include "kernels/cpu_simd/panel.h"

#define ZRT_SIMD static inline __attribute__((always_inline))

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kRows = 16, kHalves = 2;  // two registers of 8 rows
constexpr int kGroupCodes = 256;        // k of a panel
constexpr std::uint32_t kTokens = 64;   // that sweep over a panel before the next group is unpacked

ZRT_SIMD __m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
ZRT_SIMD __m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
ZRT_SIMD float half_to_float(std::uint16_t h) {
  return _cvtsh_ss(h);
}
ZRT_SIMD int broadcast_word(const void* p) {
  int word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// ---- formats: 32 codes in the order of k, scales, minimums ----

// Low nibbles are values 0..15, high ones 16..31.
ZRT_SIMD __m256i nibbles(const std::uint8_t* qs) {
  const __m128i bytes = load16(qs), mask = _mm_set1_epi8(15);
  return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(bytes, 4), mask), _mm_and_si128(bytes, mask));
}
// Bit i of 32 as 0 or 16 in byte i.
ZRT_SIMD __m256i fifth_bits(const std::uint8_t* qh) {
  const __m256i spread =
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(broadcast_word(qh)), spread);
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit), _mm256_set1_epi8(16));
}
ZRT_SIMD __m256i look_up(__m256i codes, const std::int8_t* values) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(values)), codes);
}
template <int kShift>
ZRT_SIMD __m256i field(__m256i bytes, int mask) {
  return _mm256_and_si256(_mm256_srli_epi16(bytes, kShift), _mm256_set1_epi8(static_cast<char>(mask)));
}
// (bytes >> 2 part) & 3
ZRT_SIMD __m256i two_bits(__m256i bytes, int part) {
  return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(2 * part)), _mm256_set1_epi8(3));
}

struct Small {  // 32-blocks
  static constexpr bool kIsK = false, kHasMin = false, kIsWide = false;
  static constexpr int kOffset = 0;
};
struct Q4_0 : Small {
  using Block = BlockQ4_0;
  static constexpr int kOffset = 8, kSteps = 8;
  ZRT_SIMD __m256i codes(const Block& b, int) { return nibbles(b.qs); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
};
struct Q4_1 : Small {
  using Block = BlockQ4_1;
  static constexpr bool kHasMin = true;
  static constexpr int kSteps = 8;
  ZRT_SIMD __m256i codes(const Block& b, int) { return nibbles(b.qs); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
  ZRT_SIMD float m(const Block& b) { return half_to_float(b.m); }
};
struct Q5_0 : Small {
  using Block = BlockQ5_0;
  static constexpr int kOffset = 16, kSteps = 4;
  ZRT_SIMD __m256i codes(const Block& b, int) { return _mm256_or_si256(nibbles(b.qs), fifth_bits(b.qh)); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
};
struct Q5_1 : Small {
  using Block = BlockQ5_1;
  static constexpr bool kHasMin = true;
  static constexpr int kSteps = 4;
  ZRT_SIMD __m256i codes(const Block& b, int) { return _mm256_or_si256(nibbles(b.qs), fifth_bits(b.qh)); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
  ZRT_SIMD float m(const Block& b) { return half_to_float(b.m); }
};
struct Q8_0 : Small {
  using Block = BlockQ8_0;
  static constexpr bool kIsWide = true;
  ZRT_SIMD __m256i codes(const Block& b, int) { return load(b.qs); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
};
struct Iq4Nl : Small {
  using Block = BlockIQ4_NL;
  static constexpr bool kIsWide = true;
  ZRT_SIMD __m256i codes(const Block& b, int) { return look_up(nibbles(b.qs), kIq4Values); }
  ZRT_SIMD float d(const Block& b) { return half_to_float(b.d); }
};
struct Mxfp4 : Small {
  using Block = BlockMXFP4;
  static constexpr int kOffset = 12, kSteps = 4;  // codes up to 24
  ZRT_SIMD __m256i codes(const Block& b, int) {
    return _mm256_add_epi8(look_up(nibbles(b.qs), kFp4Values), _mm256_set1_epi8(kOffset));
  }
  ZRT_SIMD float d(const Block& b) {  // 2^(e - 128); e of 0 and 1 are subnormal
    const std::uint32_t bits = b.e < 2 ? 0x00200000u << b.e : (b.e - 1u) << 23;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

struct Super {  // K-quants: scales of kSub values each, in `sc`; minimums in `m`
  static constexpr bool kIsK = true, kHasMin = false, kIsWide = false;
  static constexpr int kOffset = 0;
};
ZRT_SIMD void k_scales(const std::uint8_t* packed, int* sc, int* m) {
  const auto scales = cpu::unpack_k_scales(packed);
  for (int j = 0; j < 8; ++j) sc[j] = scales.sc[j], m[j] = scales.m[j];
}
struct Q4K : Super {
  using Block = BlockQ4_K;
  static constexpr bool kHasMin = true;
  static constexpr int kSub = 32, kSteps = 8;
  ZRT_SIMD __m256i codes(const Block& b, int s) {
    const __m256i bytes = load(b.qs + 32 * (s / 2));
    return s % 2 == 0 ? field<0>(bytes, 15) : field<4>(bytes, 15);
  }
  ZRT_SIMD void scales(const Block& b, int* sc, int* m) { k_scales(b.scales, sc, m); }
};
struct Q5K : Super {
  using Block = BlockQ5_K;
  static constexpr bool kHasMin = true;
  static constexpr int kSub = 32, kSteps = 4;
  ZRT_SIMD __m256i codes(const Block& b, int s) {
    const __m256i bytes = load(b.qs + 32 * (s / 2));
    const __m256i low = s % 2 == 0 ? field<0>(bytes, 15) : field<4>(bytes, 15);
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << s));
    const __m256i high = _mm256_cmpeq_epi8(_mm256_and_si256(load(b.qh), bit), bit);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(16)));
  }
  ZRT_SIMD void scales(const Block& b, int* sc, int* m) { k_scales(b.scales, sc, m); }
};
struct Q6K : Super {
  using Block = BlockQ6_K;
  static constexpr int kSub = 16, kOffset = 32, kSteps = 2;
  ZRT_SIMD __m256i codes(const Block& b, int s) {
    const int half = s / 4, part = s % 4;
    const __m256i bytes = load(b.ql + 64 * half + 32 * (part % 2));
    const __m256i low = part < 2 ? field<0>(bytes, 15) : field<4>(bytes, 15);
    return _mm256_or_si256(low, _mm256_slli_epi16(two_bits(load(b.qh + 32 * half), part), 4));
  }
  ZRT_SIMD void scales(const Block& b, int* sc, int*) {
    for (int j = 0; j < 16; ++j) sc[j] = b.scales[j];
  }
};
struct Q2K : Super {
  using Block = BlockQ2_K;
  static constexpr bool kHasMin = true;
  static constexpr int kSub = 16, kSteps = 8;
  ZRT_SIMD __m256i codes(const Block& b, int s) { return two_bits(load(b.qs + 32 * (s / 4)), s % 4); }
  ZRT_SIMD void scales(const Block& b, int* sc, int* m) {
    for (int j = 0; j < 16; ++j) sc[j] = b.scales[j] & 15, m[j] = b.scales[j] >> 4;
  }
};
struct Q3K : Super {
  using Block = BlockQ3_K;
  static constexpr int kSub = 16, kOffset = 4, kSteps = 8;
  ZRT_SIMD __m256i codes(const Block& b, int s) {
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << s));
    const __m256i high = _mm256_cmpeq_epi8(_mm256_and_si256(load(b.hmask), bit), bit);
    return _mm256_or_si256(two_bits(load(b.qs + 32 * (s / 4)), s % 4), _mm256_and_si256(high, _mm256_set1_epi8(4)));
  }
  ZRT_SIMD void scales(const Block& b, int* sc, int*) {
    for (int j = 0; j < 16; ++j) {
      const int low = (b.scales[j % 8] >> (4 * (j / 8))) & 15, high = (b.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
      sc[j] = (low | (high << 4)) - 32;
    }
  }
};
struct Iq4Xs : Super {
  using Block = BlockIQ4_XS;
  static constexpr bool kIsWide = true;
  static constexpr int kSub = 32;
  ZRT_SIMD __m256i codes(const Block& b, int s) { return look_up(nibbles(b.qs + 16 * s), kIq4Values); }
  ZRT_SIMD void scales(const Block& b, int* sc, int*) {
    for (int j = 0; j < 8; ++j) {
      const int low = (b.scales_l[j / 2] >> (4 * (j % 2))) & 15, high = (b.scales_h >> (2 * j)) & 3;
      sc[j] = (low | (high << 4)) - 32;
    }
  }
};

// ---- the panel ----

// Word i of row r becomes word r of row i.
ZRT_SIMD void transpose(__m256i* r) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2x128_si256(b[i], b[4 + i], 0x20);
    r[4 + i] = _mm256_permute2x128_si256(b[i], b[4 + i], 0x31);
  }
}

// One group of kRows rows. codes[word][half]: a word is 4 codes of k (bytes) or 2 (words).
struct Panel {
  alignas(64) __m256i codes[kGroupCodes / 2][kHalves];
  alignas(64) float d[8][kRows], m[8][kRows];  // 32-blocks: of each block; K-quants: d[0], and -dmin in m[0]
  alignas(64) std::int32_t sc[16][kRows], min[16][kRows];  // K-quants
};

template <class F>
ZRT_SIMD void unpack(const typename F::Block* const* rows, int n_rows, std::int64_t g, int n_blocks, Panel& panel) {
  for (int s = 0; s < n_blocks; ++s)
    for (int half = 0; half < kHalves; ++half) {
      __m256i word[8], more[8];
      for (int i = 0; i < 8; ++i) {
        const int r = 8 * half + i;
        const __m256i zero = _mm256_setzero_si256();
        const __m256i codes = r < n_rows ? F::codes(rows[r][F::kIsK ? g : 8 * g + s], s) : zero;
        if constexpr (F::kIsWide) {
          word[i] = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(codes));
          more[i] = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(codes, 1));
        } else {
          word[i] = codes;
        }
      }
      transpose(word);
      if constexpr (F::kIsWide) {
        transpose(more);
        for (int i = 0; i < 8; ++i) {
          panel.codes[16 * s + i][half] = word[i];
          panel.codes[16 * s + 8 + i][half] = more[i];
        }
      } else {
        for (int i = 0; i < 8; ++i) panel.codes[8 * s + i][half] = word[i];
      }
    }
  for (int r = 0; r < kRows; ++r) {
    if constexpr (F::kIsK) {
      int sc[16] = {}, min[16] = {};
      if (r < n_rows) F::scales(rows[r][g], sc, min);
      for (int j = 0; j < kGroupCodes / F::kSub; ++j) panel.sc[j][r] = sc[j], panel.min[j][r] = min[j];
      panel.d[0][r] = r < n_rows ? half_to_float(rows[r][g].d) : 0.0f;
      if constexpr (F::kHasMin) panel.m[0][r] = r < n_rows ? -half_to_float(rows[r][g].dmin) : 0.0f;
    } else {
      for (int s = 0; s < n_blocks; ++s) {
        panel.d[s][r] = r < n_rows ? F::d(rows[r][8 * g + s]) : 0.0f;
        if constexpr (F::kHasMin) panel.m[s][r] = r < n_rows ? F::m(rows[r][8 * g + s]) : 0.0f;
      }
    }
  }
}

// Dots of codes [begin, begin + n) of the panel with x[0..n); sum_x: of those x.
template <class F>
ZRT_SIMD void dot(const Panel& panel, int begin, const std::int8_t* x, int n, int sum_x, __m256i* out) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int half = 0; half < kHalves; ++half) out[half] = _mm256_setzero_si256();
  if constexpr (F::kIsWide) {
    for (int k = 0; k < n; k += 16) {
      alignas(32) std::int16_t wide[16];
      _mm256_store_si256(reinterpret_cast<__m256i*>(wide), _mm256_cvtepi8_epi16(load16(x + k)));
      for (int i = 0; i < 8; ++i) {
        const __m256i pair = _mm256_set1_epi32(broadcast_word(wide + 2 * i));
        for (int half = 0; half < kHalves; ++half)
          out[half] = _mm256_add_epi32(out[half], _mm256_madd_epi16(panel.codes[(begin + k) / 2 + i][half], pair));
      }
    }
  } else {
    for (int first = 0; first < n; first += 4 * F::kSteps) {
      __m256i sum[kHalves] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
      for (int i = 0; i < F::kSteps && first + 4 * i < n; ++i) {
        const __m256i four = _mm256_set1_epi32(broadcast_word(x + first + 4 * i));
        for (int half = 0; half < kHalves; ++half)
          sum[half] =
              _mm256_add_epi16(sum[half], _mm256_maddubs_epi16(panel.codes[(begin + first) / 4 + i][half], four));
      }
      for (int half = 0; half < kHalves; ++half)
        out[half] = _mm256_add_epi32(out[half], _mm256_madd_epi16(sum[half], ones));
    }
    if constexpr (F::kOffset != 0)
      for (int half = 0; half < kHalves; ++half)
        out[half] = _mm256_sub_epi32(out[half], _mm256_set1_epi32(F::kOffset * sum_x));
  }
}

template <class F>
ZRT_SIMD void sweep_small(const Panel& panel, const ActBlockQ8A32* x, int n_blocks, __m256* acc) {
  __m256 v[kHalves] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int s = 0; s < n_blocks; ++s) {
    __m256i isum[kHalves];
    dot<F>(panel, 32 * s, x[s].qs, 32, x[s].sum, isum);
    const __m256 d_x = _mm256_set1_ps(x[s].d), sum_x = _mm256_set1_ps(static_cast<float>(x[s].sum));
    for (int half = 0; half < kHalves; ++half) {
      const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(isum[half]), _mm256_load_ps(panel.d[s] + 8 * half));
      v[half] = _mm256_fmadd_ps(scaled, d_x, v[half]);
      if constexpr (F::kHasMin)
        v[half] = _mm256_fmadd_ps(_mm256_mul_ps(sum_x, _mm256_load_ps(panel.m[s] + 8 * half)), d_x, v[half]);
    }
  }
  for (int half = 0; half < kHalves; ++half) acc[half] = _mm256_add_ps(acc[half], v[half]);
}

template <class F>
ZRT_SIMD void sweep_super(const Panel& panel, const ActBlockQ8A256& x, __m256* acc) {
  __m256i isum[kHalves] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  __m256i msum[kHalves] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int j = 0; j < kGroupCodes / F::kSub; ++j) {
    const int sum_x = F::kSub == 16 ? x.sums[j] : x.sums[2 * j] + x.sums[2 * j + 1];
    __m256i part[kHalves];
    dot<F>(panel, F::kSub * j, x.qs + F::kSub * j, F::kSub, sum_x, part);
    for (int half = 0; half < kHalves; ++half) {
      isum[half] = _mm256_add_epi32(isum[half], _mm256_mullo_epi32(part[half], load(panel.sc[j] + 8 * half)));
      if constexpr (F::kHasMin)
        msum[half] =
            _mm256_add_epi32(msum[half], _mm256_mullo_epi32(load(panel.min[j] + 8 * half), _mm256_set1_epi32(sum_x)));
    }
  }
  const __m256 d_x = _mm256_set1_ps(x.d);
  for (int half = 0; half < kHalves; ++half) {
    const __m256 i = _mm256_cvtepi32_ps(isum[half]), d = _mm256_load_ps(panel.d[0] + 8 * half);
    __m256 v;
    if constexpr (F::kHasMin)
      v = _mm256_fmadd_ps(i, d, _mm256_mul_ps(_mm256_cvtepi32_ps(msum[half]), _mm256_load_ps(panel.m[0] + 8 * half)));
    else
      v = _mm256_mul_ps(i, d);
    acc[half] = _mm256_fmadd_ps(v, d_x, acc[half]);
  }
}

void store(const cpu::LinearArgs& a, std::uint32_t t, std::uint32_t m, int n_rows, const __m256* acc) {
  alignas(32) float row[kRows];
  for (int half = 0; half < kHalves; ++half) _mm256_store_ps(row + 8 * half, acc[half]);
  float* y = a.y + t * a.y_pitch + m;
  for (int r = 0; r < n_rows; ++r)
    y[r] = a.bias != nullptr ? row[r] + a.bias[m + static_cast<std::uint32_t>(r)] : row[r];
}

template <class F>
void run(const cpu::LinearArgs& a, std::uint64_t w_row, std::uint32_t begin, std::uint32_t end) {
  using Act = ActBlockQ8A32;
  Panel panel;
  const std::int64_t n_groups = (a.k + kGroupCodes - 1) / kGroupCodes;
  for (std::uint32_t m = begin; m < end; m += kRows) {
    const int n_rows = static_cast<int>(end - m < kRows ? end - m : kRows);
    const typename F::Block* rows[kRows] = {};
    for (int r = 0; r < n_rows; ++r)
      rows[r] = reinterpret_cast<const typename F::Block*>(static_cast<const std::byte*>(a.w) +
                                                           (m + static_cast<std::uint32_t>(r)) * w_row);
    for (std::uint32_t first = 0; first < a.n; first += kTokens) {
      const std::uint32_t n = a.n - first < kTokens ? a.n - first : kTokens;
      __m256 acc[kTokens][kHalves];
      for (std::uint32_t t = 0; t < n; ++t)
        for (int half = 0; half < kHalves; ++half) acc[t][half] = _mm256_setzero_ps();
      for (std::int64_t g = 0; g < n_groups; ++g) {
        const std::int64_t left = (a.k - g * kGroupCodes) / 32;
        const int n_blocks = static_cast<int>(left < 8 ? left : 8);
        unpack<F>(rows, n_rows, g, n_blocks, panel);
        for (std::uint32_t t = 0; t < n; ++t) {
          const std::byte* x = static_cast<const std::byte*>(a.x) + (first + t) * a.x_pitch;
          if constexpr (F::kIsK)
            sweep_super<F>(panel, reinterpret_cast<const ActBlockQ8A256*>(x)[g], acc[t]);
          else
            sweep_small<F>(panel, reinterpret_cast<const Act*>(x) + 8 * g, n_blocks, acc[t]);
        }
      }
      for (std::uint32_t t = 0; t < n; ++t) store(a, first + t, m, n_rows, acc[t]);
    }
  }
}

using Run = void (*)(const cpu::LinearArgs&, std::uint64_t, std::uint32_t, std::uint32_t);
Run find(DType w) {
  switch (w) {
    case DType::kQ4_0: return run<Q4_0>;
    case DType::kQ4_1: return run<Q4_1>;
    case DType::kQ5_0: return run<Q5_0>;
    case DType::kQ5_1: return run<Q5_1>;
    case DType::kQ8_0: return run<Q8_0>;
    case DType::kIQ4_NL: return run<Iq4Nl>;
    case DType::kMXFP4: return run<Mxfp4>;
    case DType::kQ2_K: return run<Q2K>;
    case DType::kQ3_K: return run<Q3K>;
    case DType::kQ4_K: return run<Q4K>;
    case DType::kQ5_K: return run<Q5K>;
    case DType::kQ6_K: return run<Q6K>;
    case DType::kIQ4_XS: return run<Iq4Xs>;
    default: return nullptr;
  }
}

}  // namespace

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool linear_panel_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.x_dtype == DType::kF32 || args.n < kFewestRows) return false;
  const Run body = find(args.w_dtype);
  if (body == nullptr) return false;
  body(args, row_bytes(args.w_dtype, args.k), begin, end);
  return true;
}

}  // namespace zinc_rt::cpu_simd
