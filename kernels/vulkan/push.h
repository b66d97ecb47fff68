// The push constants of the kernels in this folder, a struct for each kernel. GLSL and C++ both read this file. A u64
// is an address in device memory, or 0 if the operand is absent. Each kernel's head says what its grid is. The grid may
// exceed the work, so the numbers here say where a row ends.
#ifdef __cplusplus
#pragma once
#include <cstdint>
namespace zinc_rt::vulkan::push {
using u64 = std::uint64_t;
using u32 = std::uint32_t;
using f32 = float;
#else
#define u64 uint64_t
#define u32 uint
#define f32 float
#endif

// Invocations of a workgroup, in the kernels that do not have a number of their own below.
const u32 kWidth = 64;
const u32 kAttendWidth = 128;  // FLASH_ATTN: invocations, one for each token of a chunk
// flash_attn_integer_tile.comp: the most tokens and heads of a tile.
const u32 kAttendTokens = 4, kAttendHeads = 4;
// flash_attn_integer_matrix.glsl: invocations, the most heads of a tile, and the words of memory that a workgroup needs
// for `rows` rows, q_words words of digits per row of q, and parts of `step` values of K.
const u32 kAttendMatrixWidth = 256, kAttendMatrixHeads = 8;
#define ZRT_ATTEND_MATRIX_WORDS(rows, step, q_words) (1280 + 32 * (step) + (rows) * (2 * (q_words) + 144))
const u32 kMostHeadDim = 512;  // the most values of a head
const u32 kTile = 8;           // linear_tiled.comp: rows of x per invocation
// linear_row.glsl, per workgroup: the maximum number of invocations, the number of rows of w, and the maximum number of
// rows of x.
const u32 kRowWidth = 128, kRowRows = 4, kRowTokens = 16;
const u32 kLinearWidth = 128;  // linear.glsl: invocations
const u32 kLinearRows = 2;     // linear.glsl: rows of w per subgroup
// linear_matrix.glsl: invocations, rows of w and rows of x per workgroup.
const u32 kMatrixWidth = 512, kMatrixRows = 64, kMatrixTokens = 128;
const u32 kArgmaxWidth = 512;
const u32 kNormWidth = 512;                   // RESIDUAL_RMS_NORM: invocations
const u32 kDeltaWidth = 128;                  // SSM_DELTA_NET: invocations; each has columns of the state
const u32 kMostKeyDim = 256, kMostTaps = 16;  // recurrent layers: the most values of a key, and taps of the convolution
const u32 kMostExperts = 1024;

struct Embed {
  u64 ids, table, y;
  u32 d, row_bytes;
  f32 scale;
};
struct RmsNorm {
  u64 x, w, y;
  u32 d, group;
  f32 eps, inverse;  // inverse: 1 / group
};
struct Quantize {
  u64 x, y;
  u32 k, y_row_bytes;
};
struct Linear {
  u64 x, w, bias, y, n_rows;  // n_rows: the address of the number of rows of x
  u32 k, m, x_row_bytes, w_row_bytes;
};
struct MoeLinear {
  u64 x, w, ids, y, matrix_bytes;  // ids: the expert of each choice; matrix_bytes: bytes of one expert's matrix
  u32 k, m, x_row_bytes, w_row_bytes, choices;  // choices: how many choices read one row of x
};
struct MoeGateTopk {
  u64 logits, ids, weights;
  u32 n_experts, n_used;
  f32 scale;
};
struct MoeSum {
  u64 y, ids, weights, expert_scale, z;
  u32 d, n_used;
};
struct SsmConv1d {
  u64 x, conv_w, state, y, positions, slots, runs;
  u32 channels, width;
};
struct SsmDeltaNet {
  u64 x, beta, alpha, a, dt, state, y, positions, slots, runs;
  u32 n_k_heads, n_v_heads, k_dim, v_dim, tiled;
  f32 eps;
};
struct RmsNormRopeKvWrite {
  u64 q, k, v, q_w, k_w, table, positions, rope_positions, slots, pages, cache;  // table: RoPE's cosines and sines
  u32 n_heads, n_kv_heads, head_dim, v_head_dim, width, page_bytes, v_offset, n_rot, flags;
  f32 eps;
};
const u32 kNeox = 1, kNormedValues = 2;  // RmsNormRopeKvWrite::flags
struct FlashAttn {
  u64 q, cache, y, positions, slots, pages;
  u32 n_heads, n_kv_heads, head_dim, v_head_dim, width, page_bytes, v_offset, window;
  f32 scale, softcap;
};
struct FlashAttnMerge {
  u64 parts, y, positions;
  u32 n_heads, v_head_dim, window;
};
struct GluQuantize {
  u64 gate, up, y;
  u32 width, act, y_row_bytes;
};
struct ResidualRmsNorm {
  u64 x, y, rows, w, z, q;  // q: quantized z
  u32 d, q_row_bytes;
  f32 eps, inverse;  // inverse: 1 / d
};
struct Glu {
  u64 gate, up, y;
  u32 width, act;  // act: push::Activation of kernels/common
};
struct Add {
  u64 x, y;  // x += y
  u32 width;
};
struct Scale {
  u64 x, w;  // x in place
  u32 width;
  f32 scale;
};
struct Slice {
  u64 x, y;
  u32 groups, group, first, width;
};
struct SigmoidMul {
  u64 x, gate;            // x in place
  u32 width, gate_width;  // gate_width: 1, or width
};
struct Softcap {
  u64 x;  // in place
  u32 width;
  f32 cap;
};
struct Argmax {
  u64 x, tokens;
  u32 width;
};
struct SelfTest {
  u64 a, b, y;
  u32 n, function;
};

// What the self-test computes: SelfTest::function.
const u32 kTestFma = 0, kTestSumOfProduct = 1, kTestProduct = 2, kTestSum = 3, kTestRound = 4, kTestExp = 5,
          kTestSilu = 6, kTestGelu = 7, kTestTanh = 8, kTestDiv = 9, kTestRsqrt = 10, kTestFromInt = 11,
          kTestToHalf = 12, kTestFromHalf = 13, kTestDotOfBytes = 14, kTestFold = 15, kTestSigmoid = 16,
          kTestSoftplus = 17, kTestFunctions = 18;

#ifdef __cplusplus
}  // namespace zinc_rt::vulkan::push
#endif
