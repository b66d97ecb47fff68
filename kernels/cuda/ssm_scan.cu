// SSM_SCAN: Mamba 2's recurrence, token by token. The order of sums is that of kernels/cpu/ssm_scan.cpp, which also says
// what saved rows and guesses are.
// Grid: (tiles of 32 columns of the heads' states, runs). A run is the tokens of a slot in this step. Workgroup (x, r)
// goes through the tokens of run r in order.
// The rows of the state are divided among the workgroup's warps. Each lane keeps its rows of one column in registers
// from the first token to the last. A column's y is a sum over all rows in ascending order, so a warp continues the
// sums of the warp with the rows before. The warps are therefore a pipeline over chunks of kScanTokens tokens: in step
// i, warp w applies chunk i - w, and passes the chunk's sums on at the barrier between the steps.
// Shared memory: ScanTokens of each warp, then ScanSums [2][warp]. In step i a warp reads the sums [i % 2][warp].
#include "kernels/common/state_run.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/scan_args.h"

using namespace zinc_rt::cuda;

namespace {

constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

// Returns the first token of the step's run number `which`, or n if there are fewer runs. All threads of the workgroup
// must call it. masks: shared memory, a word per warp.
__device__ __forceinline__ uint32_t first_of_run(const int32_t* slot, uint32_t n, uint32_t which, uint32_t* masks) {
  if (which == 0) return 0;
  const uint32_t warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
  uint32_t before = 0;  // runs that begin before token `at`
  for (uint32_t at = 0; at < n; at += blockDim.x) {
    const uint32_t t = at + threadIdx.x;
    const uint32_t begins = __ballot_sync(kAllLanes, t < n && (t == 0 || slot[t - 1] != slot[t]));
    if (threadIdx.x % 32 == 0) masks[warp] = begins;
    __syncthreads();
    for (uint32_t w = 0; w < n_warps; ++w) {
      uint32_t left = masks[w];
      const uint32_t count = __popc(left);
      if (before + count > which) {
        for (; before < which; ++before) left &= left - 1;
        return at + w * 32 + __ffs(left) - 1;
      }
      before += count;
    }
    __syncthreads();
  }
  return n;
}

// A warp's part of a column of the state: lane l has rows [0, n_rows) of the warp.
struct Column {
  float s[kScanRows];
  uint32_t n_rows;

  // Calls each(i) for the rows. The loops have fixed bounds, so that the rows stay in registers.
  template <class Each>
  __device__ __forceinline__ void each_row(const Each& each) {
    if (n_rows == kScanRows) {
#pragma unroll
      for (uint32_t i = 0; i < kScanRows; ++i) each(i);
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kScanRows; ++i)
        if (i < n_rows) each(i);
    }
  }
};
// Returns x[i]. Since each_row() knows i at compile time, four neighbours become one load.
__device__ __forceinline__ float element(const float* x, uint32_t i) {
  const float4 four = reinterpret_cast<const float4*>(x)[i / 4];
  return i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
}

// A chunk of tokens on its way to shared memory: the lane's row of B and C and its column of x; of the first warp, lane
// j also has dt of token j.
struct Loaded {
  float b[kScanTokens], c[kScanTokens], x[kScanTokens], dt;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kMostScanWarps) ssm_scan(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float4, shared);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::SsmScan>();
  const uint32_t warp = threadIdx.x / 32, n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const uint32_t n = args.dim(symbol::SsmScan::rows);
  const int32_t* slots = args.buffer<const int32_t>(binding::SsmScan::slot);
  const uint32_t first = first_of_run(slots, n, blockIdx.y, reinterpret_cast<uint32_t*>(shared));
  if (first >= n) return;
  const int32_t slot = slots[first];
  const uint32_t pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::SsmScan::pos)[first]);
  const auto run = args.buffer<const zinc_rt::StateRun>(binding::SsmScan::runs)[slot];
  if (blockIdx.y != 0) __syncthreads();  // first_of_run's shared memory is read no more

  // Where things are in a row of x, and the part of the state that is this lane's.
  const uint32_t tiles = (c.head_dim + kScanColumns - 1) / kScanColumns, h = blockIdx.x / tiles,
                 tile = blockIdx.x % tiles, column = tile * kScanColumns + lane, first_row = warp * kScanRows;
  const uint32_t inner = c.n_heads * c.head_dim, columns = inner + 2 * c.n_groups * c.state_dim,
                 heads_of_group = c.n_heads / c.n_groups;
  const bool has_column = column < c.head_dim, has_row = first_row + lane < c.state_dim;
  const uint32_t x_at = h * c.head_dim + (has_column ? column : 0),
                 b_at = inner + h / heads_of_group * c.state_dim + first_row + (has_row ? lane : 0),
                 c_at = b_at + c.n_groups * c.state_dim;
  Column state;
  state.n_rows = min(c.state_dim - first_row, kScanRows);
  const auto entry = [&](uint32_t i) {
    return args.buffer<float>(binding::SsmScan::state) +
           ((static_cast<uint64_t>(i) * c.n_heads + h) * c.state_dim + first_row) * c.head_dim + column;
  };
  const auto store = [&](float* to) {
    if (has_column) state.each_row([&](uint32_t i) { to[i * c.head_dim] = state.s[i]; });
  };
  const auto saved = [&](uint32_t half, uint32_t i) {
    return args.buffer<float>(binding::SsmScan::saved) +
           ((static_cast<uint64_t>(slot) * 2 + half) * args.dim(symbol::SsmScan::k) + i) * (columns + c.n_heads);
  };
  const float* stored = entry(slot);
  const bool is_old = pos != 0 && has_column;
  state.each_row([&](uint32_t i) { state.s[i] = is_old ? stored[i * c.head_dim] : 0.0f; });

  uint32_t n_tokens = 0;  // of the run
  while (first + n_tokens < n) {
    const uint32_t t = first + n_tokens + lane;
    const uint32_t others = __ballot_sync(kAllLanes, t >= n || slots[t] != slot);
    n_tokens += others == 0 ? 32 : __ffs(others) - 1;
    if (others != 0) break;
  }
  // The replayed rows and then those of the step are numbered from 0. first_guess and last_to_save, behind which the
  // state is stored in entry save_to, may be beyond all rows.
  const uint32_t n_rows = run.n_replayed + n_tokens, last_to_save = run.save_at - 1 - (pos - run.n_replayed);
  const uint32_t first_guess = run.n_certain < n_tokens ? run.n_replayed + run.n_certain : kAbsent;
  const auto row_of = [&](uint32_t r) -> const float* {
    if (r < run.n_replayed) return saved(run.half, r);
    return args.buffer<const float>(binding::SsmScan::x) + static_cast<uint64_t>(first + r - run.n_replayed) * columns;
  };
  const auto load = [&](uint32_t chunk) {
    Loaded to;
    const uint32_t begin = chunk * kScanTokens;
#pragma unroll
    for (uint32_t j = 0; j < kScanTokens; ++j) {
      if (begin + j >= n_rows) break;
      const float* row = row_of(begin + j);
      to.b[j] = row[b_at], to.c[j] = row[c_at], to.x[j] = row[x_at];
    }
    if (const uint32_t r = begin + lane; warp == 0 && lane < kScanTokens && r < n_rows)
      to.dt =
          r < run.n_replayed
              ? row_of(r)[columns + h]
              : args.buffer<const float>(binding::SsmScan::dt)[(first + r - run.n_replayed) * uint64_t{c.n_heads} + h];
    return to;
  };

  ScanTokens& tokens = reinterpret_cast<ScanTokens*>(shared)[warp];
  auto* sums = reinterpret_cast<ScanSums*>(reinterpret_cast<ScanTokens*>(shared) + n_warps) + warp;
  const float a = args.buffer<const float>(binding::SsmScan::a)[h],
              dt_bias = args.buffer<const float>(binding::SsmScan::dt_bias)[h],
              skip = args.buffer<const float>(binding::SsmScan::d)[h];
  float* y_at = args.buffer<float>(binding::SsmScan::y) + h * c.head_dim + column;
  const bool is_last_warp = warp + 1 == n_warps;
  Loaded loaded = load(0);
  const uint32_t n_chunks = (n_rows + kScanTokens - 1) / kScanTokens;
  for (uint32_t step = 0; step < n_chunks + n_warps - 1; ++step) {
    if (step >= warp && step - warp < n_chunks) {
      const uint32_t begin = (step - warp) * kScanTokens, n_here = min(kScanTokens, n_rows - begin);
      ScanSums &in = sums[step % 2 * n_warps], &out = sums[(1 - step % 2) * n_warps + 1];
      __syncwarp();  // All lanes have read the tokens of the last chunk.
#pragma unroll
      for (uint32_t j = 0; j < kScanTokens; ++j) {
        if (j >= n_here) break;
        tokens.b[j][lane] = loaded.b[j], tokens.c[j][lane] = loaded.c[j], tokens.x[j][lane] = loaded.x[j];
        if (begin + j < first_guess) continue;
        float* to = saved(1 - run.half, begin + j - first_guess);
        if (warp == 0 && has_column) to[x_at] = loaded.x[j];
        // The heads of a group read the same B and C. The first of them saves both.
        if (tile == 0 && h % heads_of_group == 0 && has_row) to[b_at] = loaded.b[j], to[c_at] = loaded.c[j];
        if (tile == 0 && warp == 0 && lane == j) to[columns + h] = loaded.dt;
      }
      if (warp == 0 && lane < n_here) {
        in.dt[lane] = exact::softplus(loaded.dt + dt_bias);
        in.decay[lane] = exact::exp(in.dt[lane] * a);
      }
      if (begin + kScanTokens < n_rows) loaded = load(step - warp + 1);
      __syncwarp();
      if (!is_last_warp && lane < n_here) out.dt[lane] = in.dt[lane], out.decay[lane] = in.decay[lane];
      for (uint32_t j = 0; j < n_here; ++j) {
        const uint32_t r = begin + j;
        if (r == first_guess) store(entry(slot));
        const float x = tokens.x[j][lane], u = in.dt[j] * x, decay = in.decay[j];
        const float *b = tokens.b[j], *of_c = tokens.c[j];
        float y = warp == 0 ? 0.0f : in.y[j][lane];
        state.each_row([&](uint32_t i) {
          state.s[i] = __fmaf_rn(element(b, i), u, state.s[i] * decay);
          y = __fmaf_rn(state.s[i], element(of_c, i), y);
        });
        if (!is_last_warp)
          out.y[j][lane] = y;
        else if (r >= run.n_replayed && has_column)
          y_at[static_cast<uint64_t>(first + r - run.n_replayed) * inner] = __fmaf_rn(skip, x, y);
        if (r == last_to_save && r < run.n_replayed) store(entry(run.save_to));
      }
    }
    __syncthreads();
  }
  if (first_guess == kAbsent) store(entry(slot));
}
