// FLASH_ATTN and FLASH_ATTN_BATCHED of arithmetic `fast` in steps of many tokens with f16 caches: products of f16 on
// tensor cores, sums in f32. A workgroup computes a tile: up to tile_tokens tokens of a slot, times the query heads of
// a kv head (its rows). Each warp has 16 or 32 of the rows. Shared memory holds two steps of positions of K and V: one
// is read while the next is copied.
// Score s = q K in units of log2 e. Weight p = 2^(s - m). m is a number per row that is at most kSlack below the
// largest s so far, so that sums need to be rescaled only rarely. o = sum of p v, l = sum of p, y = o / l.
// Positions that a row does not see count with p = 0, so a NaN that is stored for one token of a tile becomes a NaN in
// all rows of the tile. Positions that no row sees are not read.
// Grid: (kv heads, tiles that run at once). If a step has more tiles than that, each workgroup computes several.
#include "kernels/cuda/attention.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendMmaThreads, kAll = 0xFFFFFFFFu;
// With kSlack 8, p is at most 2^8, which f16 represents as precisely as smaller numbers.
constexpr float kLog2E = 1.44269504f, kSlack = 8.0f;

// Computes attention for tiles, for heads of up to kWidth values. kStep: positions per step. kPitch: bytes of a row of
// q, K or V in shared memory.
template <uint32_t kWidth>
struct Attend {
  static constexpr uint32_t kRows = attend_mma_rows(kWidth), kStep = attend_mma_step(kWidth),
                            kPitch = attend_mma_pitch(kWidth), kStage = 2 * kStep * kPitch;
  static constexpr uint32_t kVectors = kWidth / 8, kRowsAtOnce = kThreads / kVectors, kPages = kStep / 16;
  static constexpr uint32_t kWarpRows = kRows / (kThreads / 32), kRowTiles = kWarpRows / 16;

  // What a warp holds of m16n8 tiles: lane l has rows l / 4 and l / 4 + 8, columns l % 4 * 2 and the next one.
  using Scores = float[kRowTiles][kStep / 8][4];
  using Values = float[kRowTiles][kWidth / 8][4];
  using OfRows = float[kRowTiles][2];

  const OpArgs& args;
  const push::FlashAttn c;
  uint32_t kv_head, group;
  uint8_t* q_tile;     // followed by the two stages, each of K and V
  uint16_t* token_of;  // the token of each row, counted from the tile's first

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t first_row() { return threadIdx.x / 32 * kWarpRows; }
  __device__ __forceinline__ uint8_t* stage_at(uint32_t stage) const {
    return q_tile + kRows * kPitch + stage * kStage;
  }
  // Offsets of the row whose address a lane passes to load_matrices(), for four matrices of 8 x 8 values (a square of
  // 16 by 16). The order of the four makes the registers of a product adjacent: for q and V the upper left matrix is
  // followed by the lower left one, for K by the upper right one.
  static __device__ __forceinline__ uint32_t matrix_row() { return lane() % 16 * kPitch + lane() / 16 * 16; }
  static __device__ __forceinline__ uint32_t k_matrix_row() {
    return (lane() / 16 * 8 + lane() % 8) * kPitch + lane() / 8 % 2 * 16;
  }

  // Returns the pages of a step's positions, one per lane: lane l has that of the (l % kPages)-th 16 positions.
  // Positions outside the range get the number of a page inside it.
  __device__ __forceinline__ int32_t pages_of(const int32_t* pages, Range range, uint32_t at) const {
    return pages[min(max(at / 16 + lane() % kPages, range.begin / 16), (range.end - 1) / 16)];
  }
  // Starts the copies of K and V of a step's positions. Positions outside the range, and values behind the head's end,
  // become zeros.
  __device__ __forceinline__ void start_copies(int32_t step_pages, Range range, uint32_t at, uint32_t stage) const {
    const uint32_t first = threadIdx.x / kVectors, vector = threadIdx.x % kVectors;
    const uint32_t k_cell = c.n_kv_heads * c.head_dim * 2, v_cell = c.n_kv_heads * c.v_head_dim * 2;
    const uint8_t* k =
        args.buffer<const uint8_t>(binding::Attention::kv_k) + kv_head * c.head_dim * 2 + first * k_cell + vector * 16;
    const uint8_t* v = args.buffer<const uint8_t>(binding::Attention::kv_v) + kv_head * c.v_head_dim * 2 +
                       first * v_cell + vector * 16;
    uint8_t* to = stage_at(stage) + first * kPitch + vector * 16;
#pragma unroll
    for (uint32_t i = 0; i < kStep; i += kRowsAtOnce) {
      const uint64_t page = static_cast<uint32_t>(__shfl_sync(kAll, step_pages, i / 16));
      const bool is_seen = range.has(at + i + first);
      copy_16_or_zeros(to + i * kPitch, k + page * args.symbols[symbol::AttentionTiles::pitch_kv_k] + i % 16 * k_cell,
                       is_seen && vector * 8 < c.head_dim);
      copy_16_or_zeros(to + (kStep + i) * kPitch,
                       v + page * args.symbols[symbol::AttentionTiles::pitch_kv_v] + i % 16 * v_cell,
                       is_seen && vector * 8 < c.v_head_dim);
    }
  }

  // Loads q of the rows and scales it, so that a score can be passed to exp2. If there is a soft cap, so that it can be
  // passed to the exp2 with which tanh is computed.
  __device__ __forceinline__ void load_q(Tokens tokens) const {
    const float scale = c.softcap > 0.0f ? 2.0f * kLog2E * c.scale / c.softcap : kLog2E * c.scale;
    const uint32_t vector = threadIdx.x % kVectors;
#pragma unroll 4
    for (uint32_t r = threadIdx.x / kVectors; r < kRows; r += kRowsAtOnce) {
      float4 low = make_float4(0.0f, 0.0f, 0.0f, 0.0f), high = low;
      if (r < tokens.n * group && vector * 8 < c.head_dim) {
        const float* q = args.buffer<const float>(binding::Attention::q) + head_of(tokens, r) * c.head_dim + vector * 8;
        low = *reinterpret_cast<const float4*>(q), high = *reinterpret_cast<const float4*>(q + 4);
      }
      *reinterpret_cast<uint4*>(q_tile + r * kPitch + vector * 16) =
          make_uint4(f16_pair(low.x * scale, low.y * scale), f16_pair(low.z * scale, low.w * scale),
                     f16_pair(high.x * scale, high.y * scale), f16_pair(high.z * scale, high.w * scale));
    }
  }
  // Returns the query head of a row, counted through all tokens of the step.
  __device__ __forceinline__ uint64_t head_of(Tokens tokens, uint32_t r) const {
    const uint32_t token = token_of[r];
    return static_cast<uint64_t>(tokens.first + token) * c.n_heads + kv_head * group + (r - token * group);
  }

  // s += q K of the warp's rows, for the positions of a stage.
  __device__ __forceinline__ void score(Scores& s, uint32_t stage) const {
    const uint8_t *q_at = q_tile + first_row() * kPitch + matrix_row(), *k_at = stage_at(stage) + k_matrix_row();
#pragma unroll
    for (uint32_t k = 0; k < kWidth / 16; ++k) {
      uint32_t q[kRowTiles][4];
#pragma unroll
      for (uint32_t m = 0; m < kRowTiles; ++m) load_matrices(q[m], q_at + m * 16 * kPitch + k * 32);
#pragma unroll
      for (uint32_t n = 0; n < kStep / 16; ++n) {
        uint32_t of_k[4];
        load_matrices(of_k, k_at + n * 16 * kPitch + k * 32);
#pragma unroll
        for (uint32_t m = 0; m < kRowTiles; ++m) {
          mma16_f16(s[m][2 * n], q[m], of_k[0], of_k[1]);
          mma16_f16(s[m][2 * n + 1], q[m], of_k[2], of_k[3]);
        }
      }
    }
  }

  // Replaces s by softcap * tanh(x), where s is 2 x in units of log2 e.
  __device__ __forceinline__ void cap_scores(Scores& s) const {
    const float cap = c.softcap * kLog2E;
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (uint32_t n = 0; n < kStep / 8; ++n)
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i)
          s[m][n][i] = __fmaf_rn(-2.0f * cap, approx_rcp(1.0f + approx_exp2(s[m][n][i])), cap);
  }

  // Sets each score whose position its row does not see to minus infinity. pos: the position of the tile's first token.
  __device__ __forceinline__ void mask_scores(Scores& s, uint32_t pos, uint32_t at) const {
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t own = pos + token_of[first_row() + m * 16 + half * 8 + lane() / 4];
        const Range seen{first_seen(c.window, own), own + 1};
#pragma unroll
        for (uint32_t n = 0; n < kStep / 8; ++n)
#pragma unroll
          for (uint32_t i = 0; i < 2; ++i)
            if (!seen.has(at + n * 8 + lane() % 4 * 2 + i)) s[m][n][half * 2 + i] = -__int_as_float(0x7f800000);
      }
  }

  // Raises m of those rows for which it is too far below the largest score. What has been summed up so far is scaled
  // down accordingly.
  __device__ __forceinline__ void raise(const Scores& s, OfRows& maxima, OfRows& sums, Values& o) const {
    OfRows less;
    bool is_raised = false;
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        float most = fmaxf(s[m][0][half * 2], s[m][0][half * 2 + 1]);
#pragma unroll
        for (uint32_t n = 1; n < kStep / 8; ++n) most = fmaxf(most, fmaxf(s[m][n][half * 2], s[m][n][half * 2 + 1]));
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 1));
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 2));
        const bool is_higher = most > maxima[m][half] + kSlack;
        is_raised |= is_higher;
        less[m][half] = is_higher ? approx_exp2(maxima[m][half] - most) : 1.0f;
        if (is_higher) maxima[m][half] = most;
      }
    if (__ballot_sync(kAll, is_raised) == 0) return;
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m) {
      sums[m][0] = sums[m][0] * less[m][0], sums[m][1] = sums[m][1] * less[m][1];
#pragma unroll
      for (uint32_t n = 0; n < kWidth / 8; ++n)
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) o[m][n][i] = o[m][n][i] * less[m][i / 2];
    }
  }
  // Replaces each score s by its weight p, and adds p to the sums.
  __device__ __forceinline__ void weigh(Scores& s, const OfRows& maxima, OfRows& sums) const {
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        // A row that has not seen any position yet has no maximum.
        const float from = maxima[m][i / 2] == -__int_as_float(0x7f800000) ? 0.0f : maxima[m][i / 2];
#pragma unroll
        for (uint32_t n = 0; n < kStep / 8; ++n) {
          s[m][n][i] = approx_exp2(s[m][n][i] - from);
          sums[m][i / 2] = sums[m][i / 2] + s[m][n][i];
        }
      }
  }

  // o += p V, for the positions of a stage. The weights p are rounded to f16.
  __device__ __forceinline__ void sum_values(Values& o, const Scores& p, uint32_t stage) const {
    const uint8_t* v_at = stage_at(stage) + kStep * kPitch + matrix_row();
#pragma unroll
    for (uint32_t k = 0; k < kStep / 16; ++k) {
      uint32_t weights[kRowTiles][4];
#pragma unroll
      for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i)
          weights[m][i] = f16_pair(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (uint32_t n = 0; n < kWidth / 16; ++n) {
        uint32_t v[4];
        load_matrices_transposed(v, v_at + k * 16 * kPitch + n * 32);
#pragma unroll
        for (uint32_t m = 0; m < kRowTiles; ++m) {
          mma16_f16(o[m][2 * n], weights[m], v[0], v[1]);
          mma16_f16(o[m][2 * n + 1], weights[m], v[2], v[3]);
        }
      }
    }
  }

  // Divides o by the sums, and writes y of the tile's rows.
  __device__ __forceinline__ void write(const Values& o, const OfRows& sums, Tokens tokens) const {
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        float sum = sums[m][half];
        sum = sum + __shfl_xor_sync(kAll, sum, 1);
        sum = sum + __shfl_xor_sync(kAll, sum, 2);
        const uint32_t r = first_row() + m * 16 + half * 8 + lane() / 4;
        if (r >= tokens.n * group) continue;
        float* y = args.buffer<float>(binding::Attention::y) + head_of(tokens, r) * c.v_head_dim;
        const float by = approx_rcp(sum);
#pragma unroll
        for (uint32_t n = 0; n < kWidth / 8; ++n)
          if (n * 8 < c.v_head_dim)
            *reinterpret_cast<float2*>(y + n * 8 + lane() % 4 * 2) =
                make_float2(o[m][n][half * 2] * by, o[m][n][half * 2 + 1] * by);
      }
  }

  // Computes a tile.
  __device__ __forceinline__ void run(Tokens tokens) const {
    const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                  *slots = args.buffer<const int32_t>(binding::Attention::slot);
    const auto pos = static_cast<uint32_t>(positions[tokens.first]);
    const uint32_t last = pos + tokens.n - 1;
    const int32_t* pages = args.buffer<const int32_t>(binding::Attention::page_table) +
                           static_cast<uint64_t>(slots[tokens.first]) * args.dim(symbol::AttentionTiles::m);
    const Range range{first_seen(c.window, pos), last + 1};
    const uint32_t first = range.begin / kStep * kStep, all_see = first_seen(c.window, last);
    start_copies(pages_of(pages, range, first), range, first, 0);
    int32_t next_pages = pages_of(pages, range, first + kStep);
    for (uint32_t r = threadIdx.x; r < kRows; r += kThreads)
      token_of[r] = static_cast<uint16_t>(min(r / group, tokens.n - 1));
    __syncthreads();  // all rows' tokens are stored, and no thread looks for a tile any more
    load_q(tokens);
    Values o = {};
    OfRows maxima, sums = {};
#pragma unroll
    for (uint32_t m = 0; m < kRowTiles; ++m) maxima[m][0] = maxima[m][1] = -__int_as_float(0x7f800000);
    uint32_t stage = 0;
#pragma unroll 1
    for (uint32_t at = first; at < range.end; at += kStep, stage ^= 1) {
      wait_for_copies();
      __syncthreads();  // this step has arrived, and nobody reads the one before it any more
      if (at + kStep < range.end) {
        start_copies(next_pages, range, at + kStep, stage ^ 1);
        next_pages = pages_of(pages, range, at + 2 * kStep);
      }
      if (first_row() >= tokens.n * group) continue;  // a warp without rows only copies
      Scores s = {};
      score(s, stage);
      if (c.softcap > 0.0f) cap_scores(s);
      if (at + kStep > pos + 1 || at < all_see) mask_scores(s, pos, at);
      raise(s, maxima, sums, o);
      weigh(s, maxima, sums);
      sum_values(o, s, stage);
    }
    let_next_start();
    write(o, sums, tokens);
  }
};

// The kernel for heads of up to kWidth values.
template <uint32_t kWidth>
__device__ __forceinline__ void attend_mma(const OpArgs& args) {
  using A = Attend<kWidth>;
  ZRT_DYNAMIC_SHARED(uint4, shared);
  __shared__ uint16_t token_of[A::kRows];
  wait_for_inputs();
  const auto c = args.constants<push::FlashAttn>();
  const A attend{args, c, blockIdx.x, c.n_heads / c.n_kv_heads, reinterpret_cast<uint8_t*>(shared), token_of};
  for_own_tiles<kThreads>(args, reinterpret_cast<uint32_t*>(shared), [&](Tokens tokens) { attend.run(tokens); });
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_mma_64(const __grid_constant__ OpArgs args) {
  attend_mma<64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_mma_128(const __grid_constant__ OpArgs args) {
  attend_mma<128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_mma_256(const __grid_constant__ OpArgs args) {
  attend_mma<256>(args);
}
