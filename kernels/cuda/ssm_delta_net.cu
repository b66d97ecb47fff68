// SSM_DELTA_NET: the gated delta rule, token by token. The order of sums is that of kernels/cpu/ssm_delta_net.cpp, which
// also says what saved rows and guesses are.
// Grid: (v heads, tokens, tiles of 32 columns of the state). A workgroup is one warp. Only the workgroups of a slot's
// first token in this step work: they go through all of the slot's tokens in order. Each lane computes one column of
// the head's state [k_dim, v_dim], whose sums are all its own. A token needs the state that the token before it left,
// so a kernel is as fast as this chain: ssm_delta_net keeps the column in registers, and loads a token while it computes
// the one before. ssm_delta_net_shared is for states with more rows than registers can hold.
// Shared memory, in floats: q and k of the token (kDeltaRegisters each); of ssm_delta_net_shared q and k (k_dim each),
// then the columns (32 * k_dim).
#include "kernels/common/state_run.h"
#include "kernels/cuda/delta_net_args.h"
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

namespace {

// Row is a token before it is applied: a row of x, and the values of beta and alpha of the head.
struct Row {
  const float* x;
  float beta, alpha;
};

// Shape holds the op's constants and what follows from them.
struct Shape {
  push::SsmDeltaNet c;
  uint32_t keys, columns;    // values of all key heads; values of a row of x
  uint32_t first_q, column;  // where in a row q of the head begins; the lane's column
  bool has_column;
  float dt, a, q_scale;

  __device__ Shape(const OpArgs& args, uint32_t h) : c(args.constants<push::SsmDeltaNet>()) {
    keys = c.n_k_heads * c.k_dim;
    columns = 2 * keys + c.n_v_heads * c.v_dim;
    first_q = (c.tiled != 0 ? h % c.n_k_heads : h / (c.n_v_heads / c.n_k_heads)) * c.k_dim;
    column = blockIdx.z * kDeltaColumns + threadIdx.x;
    has_column = column < c.v_dim;
    dt = args.buffer<const float>(binding::SsmDeltaNet::dt)[h];
    a = args.buffer<const float>(binding::SsmDeltaNet::a)[h];
    q_scale = exact::rsqrt(static_cast<float>(c.k_dim));
  }
  __device__ uint32_t at_v(uint32_t h) const { return 2 * keys + h * c.v_dim + (has_column ? column : 0); }
  __device__ float decay(float alpha) const { return exact::exp(a * exact::softplus(alpha + dt)); }
};

// The rows of a column, in registers. k_dim is at most kDeltaRegisters.
struct Registers {
  // What is loaded of a token before it is applied. Lanes 0 to 15 hold q of the head, lanes 16 to 31 hold k.
  struct Token {
    LaneOfGroup key;
    float v, beta, alpha;
  };
  static constexpr uint32_t kTogether = 16;
  float s[kDeltaRegisters];
  float *q, *k;  // of the token, aligned to 16 bytes

  // Calls each(i) for the rows i below k_dim. The loops have fixed bounds, so that the rows stay in registers.
  template <class Each>
  __device__ __forceinline__ static void each_row(uint32_t k_dim, const Each& each) {
#pragma unroll
    for (uint32_t first = 0; first < kDeltaRegisters; first += kTogether) {
      if (first + kTogether <= k_dim) {
#pragma unroll
        for (uint32_t i = first; i < first + kTogether; ++i) each(i);
      } else if (first < k_dim) {
#pragma unroll
        for (uint32_t i = first; i < first + kTogether; ++i)
          if (i < k_dim) each(i);
      }
    }
  }
  __device__ __forceinline__ Token load_token(const Shape& s, const Row& row, uint32_t h) const {
    return {load_lane_of_group(row.x + (threadIdx.x < 16 ? 0 : s.keys) + s.first_q, s.c.k_dim), row.x[s.at_v(h)],
            row.beta, row.alpha};
  }
  // Writes q and k of the token to shared memory.
  __device__ __forceinline__ void normalize(const Shape& shape, const Token& token, const Row&) const {
    const float r = exact::rsqrt(sum_of_squares(token.key) + shape.c.eps);
    const uint32_t lane = threadIdx.x % 16;
    float* to = threadIdx.x < 16 ? q : k;
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i)
      if (i * 16 + lane < shape.c.k_dim)
        to[i * 16 + lane] = threadIdx.x < 16 ? token.key.v[i] * r * shape.q_scale : token.key.v[i] * r;
  }
  __device__ __forceinline__ float& at(uint32_t i) { return s[i]; }
  // Returns x[i]. Since each_row() knows i at compile time, four neighbours become one load.
  __device__ __forceinline__ static float element(const float* x, uint32_t i) {
    const float4 four = reinterpret_cast<const float4*>(x)[i / 4];
    return i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
  }
};

// The rows of a column, in shared memory behind q and k.
struct Shared {
  struct Token {
    float v, beta, alpha;
  };
  float *q, *k, *rows;

  template <class Each>
  __device__ __forceinline__ static void each_row(uint32_t k_dim, const Each& each) {
    for (uint32_t i = 0; i < k_dim; ++i) each(i);
  }
  __device__ __forceinline__ Token load_token(const Shape& s, const Row& row, uint32_t h) const {
    return {row.x[s.at_v(h)], row.beta, row.alpha};
  }
  // Sums the squares of q by lanes 0 to 15 and those of k by lanes 16 to 31, group by group.
  __device__ __forceinline__ void normalize(const Shape& shape, const Token&, const Row& row) const {
    const float* x = row.x + (threadIdx.x < 16 ? 0 : shape.keys) + shape.first_q;
    float sum = 0.0f;
    for (uint32_t begin = 0; begin < shape.c.k_dim; begin += 256)
      sum = sum + square_group(x + begin, min(256u, shape.c.k_dim - begin));
    const float r = exact::rsqrt(sum + shape.c.eps);
    float* to = threadIdx.x < 16 ? q : k;
    for (uint32_t i = threadIdx.x % 16; i < shape.c.k_dim; i += 16)
      to[i] = threadIdx.x < 16 ? x[i] * r * shape.q_scale : x[i] * r;
  }
  __device__ __forceinline__ float& at(uint32_t i) { return rows[i * kDeltaColumns + threadIdx.x]; }
  __device__ __forceinline__ static float element(const float* x, uint32_t i) { return x[i]; }
};

// Goes through the tokens of a slot: those that are replayed, then those of the step.
template <class Column>
__device__ __forceinline__ void delta_net(const OpArgs& args, Column& column) {
  const uint32_t n = args.dim(symbol::SsmDeltaNet::rows), h = blockIdx.x, first = blockIdx.y, lane = threadIdx.x;
  const int32_t *pos = args.buffer<const int32_t>(binding::SsmDeltaNet::pos),
                *slot = args.buffer<const int32_t>(binding::SsmDeltaNet::slot);
  if (first >= n || (first > 0 && slot[first - 1] == slot[first])) return;
  const Shape shape(args, h);
  const push::SsmDeltaNet& c = shape.c;
  const auto run = args.buffer<const zinc_rt::StateRun>(binding::SsmDeltaNet::runs)[slot[first]];
  const auto entry = [&](uint32_t i) {
    return args.buffer<float>(binding::SsmDeltaNet::state) +
           (static_cast<uint64_t>(i) * c.n_v_heads + h) * c.k_dim * c.v_dim + shape.column;
  };
  const auto store = [&](float* to) {
    if (shape.has_column) Column::each_row(c.k_dim, [&](uint32_t i) { to[i * c.v_dim] = column.at(i); });
  };
  const auto saved = [&](uint32_t half, uint32_t i) {
    return args.buffer<float>(binding::SsmDeltaNet::saved) +
           ((static_cast<uint64_t>(slot[first]) * 2 + half) * args.dim(symbol::SsmDeltaNet::k) + i) *
               (shape.columns + 2 * c.n_v_heads);
  };
  const float* stored = entry(slot[first]);
  const bool is_old = pos[first] != 0 && shape.has_column;
  Column::each_row(c.k_dim, [&](uint32_t i) { column.at(i) = is_old ? stored[i * c.v_dim] : 0.0f; });

  uint32_t n_rows = 0;
  while (first + n_rows < n && slot[first + n_rows] == slot[first]) ++n_rows;
  const uint32_t end = run.n_replayed + n_rows;
  const auto row_of = [&](uint32_t i) -> Row {
    if (i < run.n_replayed) {
      const float* x = saved(run.half, i);
      return {x, x[shape.columns + h], x[shape.columns + c.n_v_heads + h]};
    }
    const uint64_t t = first + i - run.n_replayed, at = t * c.n_v_heads + h;
    return {args.buffer<const float>(binding::SsmDeltaNet::x) + t * shape.columns,
            args.buffer<const float>(binding::SsmDeltaNet::beta)[at],
            args.buffer<const float>(binding::SsmDeltaNet::alpha)[at]};
  };
  Row row = row_of(0);
  typename Column::Token token = column.load_token(shape, row, h);
  for (uint32_t r = 0; r < end; ++r) {
    const bool is_replayed = r < run.n_replayed;
    const uint32_t i = r - run.n_replayed;  // of the step's rows
    if (!is_replayed && i == run.n_certain) store(entry(slot[first]));
    if (!is_replayed && i >= run.n_certain) {
      float* to = saved(1 - run.half, i - run.n_certain);
      // Several v heads read the same key head. The first of them saves its q and k.
      const bool is_first = c.tiled != 0 ? h < c.n_k_heads : h % (c.n_v_heads / c.n_k_heads) == 0;
      for (uint32_t j = lane; is_first && blockIdx.z == 0 && j < c.k_dim; j += kDeltaColumns)
        for (const uint32_t at : {shape.first_q + j, shape.keys + shape.first_q + j}) to[at] = row.x[at];
      if (shape.has_column) to[shape.at_v(h)] = row.x[shape.at_v(h)];
      if (blockIdx.z == 0 && lane == 0)
        to[shape.columns + h] = row.beta, to[shape.columns + c.n_v_heads + h] = row.alpha;
    }
    __syncthreads();
    column.normalize(shape, token, row);
    __syncthreads();
    const float v = token.v, decay = shape.decay(token.alpha), beta = exact::sigmoid(token.beta);
    if (r + 1 < end) {
      row = row_of(r + 1);
      token = column.load_token(shape, row, h);
    }
    float u = 0.0f, y = 0.0f;
    Column::each_row(c.k_dim, [&](uint32_t j) {
      column.at(j) = column.at(j) * decay;
      u = __fmaf_rn(Column::element(column.k, j), column.at(j), u);
    });
    u = (v - u) * beta;
    Column::each_row(c.k_dim, [&](uint32_t j) {
      column.at(j) = __fmaf_rn(Column::element(column.k, j), u, column.at(j));
      y = __fmaf_rn(Column::element(column.q, j), column.at(j), y);
    });
    if (!is_replayed && shape.has_column)
      args.buffer<float>(
          binding::SsmDeltaNet::y)[(static_cast<uint64_t>(first + i) * c.n_v_heads + h) * c.v_dim + shape.column] = y;
    if (is_replayed && static_cast<uint32_t>(pos[first]) - run.n_replayed + r + 1 == run.save_at)
      store(entry(run.save_to));
  }
  if (n_rows <= run.n_certain) store(entry(slot[first]));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kDeltaColumns) ssm_delta_net(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  Registers column;
  column.q = shared;
  column.k = shared + kDeltaRegisters;
  delta_net(args, column);
}

extern "C" __global__ void __launch_bounds__(kDeltaColumns) ssm_delta_net_shared(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  const uint32_t k_dim = args.constants<push::SsmDeltaNet>().k_dim;
  Shared column{shared, shared + k_dim, shared + 2 * k_dim};
  delta_net(args, column);
}
