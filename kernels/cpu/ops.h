// Declares the reference functions on rows that several ops share. A fused op calls several of them in sequence. The
// comment of a function names the file that implements it. All functions are pure and may run on several threads at
// once.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/push.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {

// Holds the arguments of one token of one v head in SSM_DELTA_NET (ssm_delta_net.cpp). `state` is S [k_dim, v_dim],
// which is updated. u and y have v_dim values.
struct DeltaStep {
  const float *q, *k, *v;
  float decay, beta;
  std::uint32_t k_dim, v_dim;
  float *state, *u, *y;
};
// Holds the arguments of one token of n channels in SSM_CONV1D (ssm_conv1d.cpp). All pointers are to the first channel.
// The state has `taps` rows, which are `pitch` floats apart. The state is updated. If bias is null, there is none.
struct ConvStep {
  const float *x, *w, *bias;
  std::uint32_t width, taps, n, pitch;
  push::ConvActivation act;
  float *state, *y;
};

// Computes channel `ch` of such a step: returns the sum before the activation and adds the token to the state. It is
// inlined because the kernel sets use it for the channels that do not fill a vector.
static inline __attribute__((always_inline)) float conv_channel(const ConvStep& step, std::uint32_t ch) {
  const std::uint64_t pitch = step.pitch;
  const float now = step.x[ch];
  const float* w = step.w + std::uint64_t{ch} * step.width;
  float* state = step.taps > 0 ? step.state + ch : nullptr;
  float acc = w[0] * (step.taps > 0 ? state[0] : now);
  for (std::uint32_t i = 1; i < step.width; ++i)
    acc = __builtin_fmaf(w[i], i < step.taps ? state[i * pitch] : now, acc);
  for (std::uint32_t i = 0; i + 1 < step.taps; ++i) state[i * pitch] = state[(i + 1) * pitch];
  if (step.taps > 0) state[(step.taps - 1) * pitch] = now;
  return step.bias != nullptr ? acc + step.bias[ch] : acc;
}

// A kernel set may implement these row functions itself, with the same bits. The functions below that take a `set` use
// the reference if the set's member is null.
struct RowKernels {
  void (*rms_norm)(const float* x, const float* w, float* y, std::uint32_t d, std::uint32_t group, float eps);
  void (*quantize)(const float* x, void* y, std::uint32_t k, DType act);
  void (*rope)(const float* x, const float* table_row, float* y, std::uint32_t d, std::uint32_t head_dim,
               std::uint32_t n_rot, bool neox);
  void (*glu)(std::uint32_t act, const float* gate, const float* up, float* y, std::uint32_t n);
  void (*delta_step)(const DeltaStep& step);
  void (*conv_step)(const ConvStep& step);
  // Does linear_rows for w in f32, f16 or bf16. x is f32, or bf16 if rounds_x returned true.
  void (*float_linear)(const LinearArgs& args, std::uint32_t begin, std::uint32_t end);
  // Used only in arithmetic `fast`; otherwise null. rounds_x returns whether linear_rows needs the rows of x rounded to
  // bf16, for weights of type `w` and n rows of x of type `x`. round_x rounds one row, once for all calls, and fills
  // the row's last cache line with zeros.
  bool (*rounds_x)(DType w, DType x, std::uint32_t n) = nullptr;
  void (*round_x)(const void* x, DType x_dtype, void* y, std::uint32_t k) = nullptr;
};
// Returns how many bytes lie between the starts of two bf16 rows. It is an odd number of cache lines, which spreads the
// rows over the sets of a cache.
inline std::uint64_t bf16_row_bytes(std::uint32_t k) {
  return (std::uint64_t{k} * 2 + 63) / 64 * 64 | 64;
}

// Computes y = x * rsqrt(mean(x^2) + eps) * w over each group of a row (rms_norm.cpp). w may be null. y may be x.
void rms_norm_row(const float* x, const float* w, float* y, std::uint32_t d, std::uint32_t group, float eps,
                  const KernelSet* set = nullptr);

// Converts n floats to int8 with one scale and returns the scale (quantize.cpp).
float quantize_block(const float* x, std::int8_t* q, int n);

// Converts k floats to blocks of the activation type `act` (quantize.cpp).
void quantize_row(const float* x, void* y, std::uint32_t k, DType act, const KernelSet* set = nullptr);

// Rotates the first n_rot of each head's head_dim values by the angles of one position (rope.cpp). table_row holds
// n_rot/2 pairs (cos, sin). y may be x.
void rope_row(const float* x, const float* table_row, float* y, std::uint32_t d, std::uint32_t head_dim,
              std::uint32_t n_rot, bool neox, const KernelSet* set = nullptr);

// Computes y = act(gate) * up, with act as in push::Glu (glu.cpp). y may be gate or up.
void glu_row(std::uint32_t act, const float* gate, const float* up, float* y, std::uint32_t n,
             const KernelSet* set = nullptr);

// Describes the K or the V side of the cache. kv_store writes one token's row to this side, at position `pos` of the
// slot that owns these pages (kv_write_batched.cpp).
struct KvSide {
  void* cache;
  DType type;
  std::uint64_t pitch;  // bytes between the starts of two pages
  std::uint32_t n_heads, head_dim;
  bool is_key;
};
void kv_store(const float* row, const KvSide& side, const std::int32_t* pages, std::uint32_t pos);

// Holds the arguments of linear_rows (linear.cpp), which computes rows [begin, end) of W [rows, k] times n rows of x.
// Rows of x are x_pitch bytes apart. x_dtype is the activation type of w_dtype, or f32, or bf16 if the set's rounds_x
// returned true. scratch has k floats. bias may be null.
struct LinearArgs {
  const void* w;
  DType w_dtype;
  bool packed;  // true: W is stored as row panels (quant/panels.h), except for last rows that do not fill a panel
  std::uint32_t rows;
  const float* bias;
  const void* x;
  DType x_dtype;
  std::uint64_t x_pitch;
  std::uint32_t k, n;
  float* y;  // the result is y[t * y_pitch + row]
  std::uint64_t y_pitch;
  float* scratch;
  const KernelSet* set = nullptr;  // if null, the reference runs
};
void linear_rows(const LinearArgs& args, std::uint32_t begin, std::uint32_t end);
// Returns the y of LinearArgs for which row `begin` is written to `at`, if no row before `begin` is computed. It is found by
// integers, because a pointer may not point before its array.
inline float* y_before(float* at, std::uint32_t begin) {
  return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(at) - std::uint64_t{begin} * sizeof(float));
}

// The following types and functions are for ops that fuse RMS_NORM with LINEARs (linear.cpp). norm_linear_prepare
// computes h = RMS_NORM(x, norm_w) once per token. If `quantize` is set, it also quantizes h to the type that each
// part's format needs. norm_linear then computes rows [begin, end) of each part's LINEAR(h).
struct NormLinearPart {
  const void* w;
  DType w_dtype;
  bool packed;
  const float* bias;
  float* y;  // results, [n, rows]
  std::uint32_t rows, begin, end;
};
struct NormArgs {
  const float* x;
  const float* w;
  std::uint32_t n, d;
  float eps;
  bool quantize;
};
void norm_linear_prepare(const CpuArgs& args, const NormArgs& norm, std::span<const NormLinearPart> parts);
void norm_linear(const CpuArgs& args, const NormArgs& norm, std::span<const NormLinearPart> parts);
std::uint64_t norm_linear_lds(std::uint32_t d);
std::uint64_t norm_linear_shared(std::uint32_t d);

// Holds the arguments of moe_linear_tile (moe_linear.cpp), which computes rows [begin, end) of one expert's matrix for
// the tokens that chose it, several tokens at a time. The call for expert 0 also writes NaN for ids without an expert.
// scratch has moe_linear_lds bytes.
struct MoeLinearArgs {
  const void* w;
  DType w_dtype;
  bool packed;
  std::uint64_t w_pitch;  // bytes between the starts of two experts' matrices
  const void* x;
  DType x_dtype;
  std::uint32_t rows;       // number of rows of x per token: 1, or as many as a token has choices
  const std::int32_t* ids;  // chosen experts of each token, [n, k]
  std::uint32_t n, k, e, f, d;
  float* y;  // results, [n, k * f]
  std::byte* scratch;
  const KernelSet* set;
};
constexpr std::uint32_t kMoeTile = 64;  // rows of an expert that one workgroup computes
std::uint64_t moe_linear_lds(std::uint32_t d);
void moe_linear_tile(const MoeLinearArgs& args, std::uint32_t expert, std::uint32_t begin, std::uint32_t end);

// Returns the weight of choice i, where i counts the choices of all tokens (moe_sum.cpp).
float moe_weight(const float* weights, const std::int32_t* ids, const float* expert_scale, std::uint32_t e,
                 std::uint32_t i);
// Computes y = fma(factor, x, y) for n elements (moe_sum.cpp).
void add_scaled(float factor, const float* x, float* y, std::uint32_t n);

// AttendTile holds the arguments of `attend` (flash_attn.cpp), which computes query tokens [0, n) of a tile, from one
// or several slots, for the query heads of one kv head.
constexpr std::uint32_t kAttendChunk = 128;  // positions per chunk (docs/arithmetic.md, rule 5)
constexpr std::uint32_t kAttendRows = 64;    // for how many pairs (query token, head) scratch memory has room
struct AttendTile {
  push::FlashAttn shape;
  const float* q;  // queries, [n, n_heads * head_dim]
  const void* kv_k;
  const void* kv_v;
  DType k_type, v_type;
  std::uint64_t k_pitch, v_pitch;  // bytes between the starts of two pages
  const std::int32_t* pos;         // position of each token, [n]
  const std::int32_t* slot;        // slot of each token, [n]
  const std::int32_t* page_table;  // pages of each slot in order, [slots, pages_per_slot]
  std::uint32_t pages_per_slot, n, kv_head;
  float* y;                      // results, [n, n_heads * v_head_dim]
  float* scratch;                // attend_scratch_floats floats, aligned to 64 bytes
  const float* sinks = nullptr;  // one per query head, or null
  // If not null, the tile is one token. The unmerged results of its chunks [chunk_begin, chunk_end) are written here,
  // and y is not written. Each chunk has a record of attend_record_floats per query head of the kv head, with the heads
  // of a chunk side by side: o, padded to a multiple of 16, then the chunk's maximum and its sum.
  float* records = nullptr;
  std::uint32_t chunk_begin = 0, chunk_end = 0;
};
void attend(const AttendTile& tile);
inline std::uint64_t attend_record_floats(std::uint64_t v_head_dim) {
  return (v_head_dim + 15) / 16 * 16 + 16;
}
// Returns how many floats of scratch memory suffice for any kernel set: a page of K or V, and for each row its query,
// the scores of a chunk, and two rows of values.
inline std::uint64_t attend_scratch_floats(std::uint64_t head_dim, std::uint64_t v_head_dim) {
  const std::uint64_t k = (head_dim + 15) / 16 * 16, v = (v_head_dim + 15) / 16 * 16;
  return 16 * (k > v ? k : v) + kAttendRows * (k + kAttendChunk + 2 * v);
}
// attend_tile_of returns the tile of a workgroup, for an attention kernel with the grid {n in tiles of `tile`,
// n_kv_heads}. run_attend computes the tile.
AttendTile attend_tile_of(const CpuArgs& args, std::uint32_t tile);
void run_attend(const CpuArgs& args, const AttendTile& tile);

// Returns the index of the largest value (argmax.cpp). Of equal values, the one with the lowest index counts. NaN is
// never the largest.
std::uint32_t argmax_row(const float* x, std::uint32_t n);

// Returns the sum of n values in 16 lanes (lane = index mod 16), folded by the tree of docs/arithmetic.md.
float sum_lanes(const float* x, std::uint32_t n);

}  // namespace zinc_rt::cpu
