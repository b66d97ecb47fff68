// The push constants of the kernels in this folder, one struct a kernel: GLSL and C++ read this file. An address is that
// of device memory, 0 where an operand is absent. A kernel's grid is (work in a row, rows); what must not be read past
// in a row is a number here.
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

// Invocations of a workgroup, and what of a row a workgroup does in a kernel with one value an invocation.
const u32 kWidth = 64;
const u32 kAttendWidth = 128;  // of FLASH_ATTN: one token of a chunk each
// Of flash_attn_integer_tile.comp: tokens of a run that a workgroup takes, heads at most.
const u32 kAttendTokens = 4, kAttendHeads = 4;
// Of flash_attn_integer_matrix.glsl: invocations, heads of a tile at most, and the words of a workgroup's memory: of so
// many rows with a head of q in so many words of digits, and a step of so many bytes.
const u32 kAttendMatrixWidth = 256, kAttendMatrixHeads = 8;
#define ZRT_ATTEND_MATRIX_WORDS(rows, step, q_words) (1280 + 32 * (step) + (rows) * (2 * (q_words) + 144))
const u32 kMostHeadDim = 512;  // values of a head of V that FLASH_ATTN holds
const u32 kTile = 8;           // rows of x that an invocation of linear_tiled.comp takes
// Of linear_row.glsl: most invocations, and rows of w and of x that a workgroup takes.
const u32 kRowWidth = 128, kRowRows = 4, kRowTokens = 16;
const u32 kLinearWidth = 128;  // of linear.glsl
const u32 kLinearRows = 2;     // rows of w that a subgroup of linear.glsl takes
// Of linear_matrix.glsl: invocations, and rows of w and of x that a workgroup takes.
const u32 kMatrixWidth = 512, kMatrixRows = 64, kMatrixTokens = 128;
const u32 kArgmaxWidth = 512;
const u32 kNormWidth = 512;                   // of RESIDUAL_RMS_NORM
const u32 kDeltaWidth = 128;                  // of SSM_DELTA_NET: a column of the state each
const u32 kMostKeyDim = 256, kMostTaps = 16;  // of a recurrent layer: values of a key, and taps of its convolution
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
  u64 x, w, bias, y, n_rows;  // n_rows: where the number of rows of x is
  u32 k, m, x_row_bytes, w_row_bytes;
};
struct MoeLinear {
  u64 x, w, ids, y, matrix_bytes;               // ids: a choice each; matrix_bytes: of one expert
  u32 k, m, x_row_bytes, w_row_bytes, choices;  // choices: that read one row of x
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
  u64 q, k, v, q_w, k_w, table, positions, rope_positions, slots, pages, cache;  // table: of RoPE
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
