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

// Returns the token behind the run that begins with token `first` of n. Tokens of a slot are neighbours, so the lanes can
// look at 32 places of the step at once. All lanes of the warp must call it.
__device__ __forceinline__ uint32_t end_of_run(const int32_t* slot, uint32_t first, uint32_t n) {
  // Token `begin` is in the run, and the run's end is in (begin, end].
  for (uint32_t begin = first, end = n;;) {
    const uint32_t apart = (end - begin + 31) / 32, t = begin + threadIdx.x % 32 * apart;
    const uint32_t n_inside = __popc(__ballot_sync(kAllLanes, t < end && slot[t] == slot[first]));
    begin += (n_inside - 1) * apart;
    if (apart == 1) return begin + 1;
    end = min(begin + apart, end);
  }
}

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

// A chunk of tokens on its way to shared memory: the lane's row of B and C and its column of x.
struct Loaded {
  float b[kScanTokens], c[kScanTokens], x[kScanTokens];
};

// The rows of a run are numbered from 0: the replayed ones, then those of the step. They have four parts, some of which
// may be empty: replayed rows up to the one behind which the state is saved, the other replayed rows, certain rows,
// guesses. A chunk lies within a part.
struct Parts {
  uint32_t saved, replayed, certain, all;  // where each part ends
  __device__ __forceinline__ uint32_t begin_of(uint32_t row) const {
    return row < saved ? 0 : row < replayed ? saved : row < certain ? replayed : certain;
  }
  __device__ __forceinline__ uint32_t end_of(uint32_t row) const {
    return row < saved ? saved : row < replayed ? replayed : row < certain ? certain : all;
  }
  // Returns the rows of the chunk that begins with a row.
  __device__ __forceinline__ uint32_t chunk(uint32_t row) const { return min(kScanTokens, end_of(row) - row); }
  __device__ __forceinline__ uint32_t n_chunks() const {
    return chunks(saved) + chunks(replayed - saved) + chunks(certain - replayed) + chunks(all - certain);
  }

 private:
  __device__ __forceinline__ static uint32_t chunks(uint32_t rows) { return (rows + kScanTokens - 1) / kScanTokens; }
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
    if (has_column) state.each_row([&](uint32_t i) { *to = state.s[i], to += c.head_dim; });
  };
  const float* stored = entry(slot);
  const bool is_old = pos != 0 && has_column;
  state.each_row([&](uint32_t i) { state.s[i] = is_old ? *stored : 0.0f, stored += c.head_dim; });

  const uint32_t n_tokens = end_of_run(slots, first, n) - first, at_save = run.save_at - 1 - (pos - run.n_replayed);
  const Parts parts{at_save < run.n_replayed ? at_save + 1 : 0, run.n_replayed,
                    run.n_replayed + min(run.n_certain, n_tokens), run.n_replayed + n_tokens};
  // A row of `saved` begins with a row of x. So load() reads rows of `saved` and rows of x in the same way. Only the
  // pitch differs, which is the number of floats from one row to the next.
  const auto saved = [&](uint32_t half, uint32_t i) {
    return args.buffer<float>(binding::SsmScan::saved) +
           ((static_cast<uint64_t>(slot) * 2 + half) * args.symbols[symbol::SsmScan::k] + i) * (columns + c.n_heads);
  };
  const auto load = [&](uint32_t begin) {
    const bool is_replayed = begin < parts.replayed;
    const uint32_t n_here = parts.chunk(begin), pitch = is_replayed ? columns + c.n_heads : columns;
    const float* row = is_replayed ? saved(run.half, begin)
                                   : args.buffer<const float>(binding::SsmScan::x) +
                                         static_cast<uint64_t>(first + begin - parts.replayed) * columns;
    Loaded to;
#pragma unroll
    for (uint32_t j = 0; j < kScanTokens; ++j, row += pitch) {
      const bool is_here = j < n_here;
      to.b[j] = is_here ? row[b_at] : 0.0f, to.c[j] = is_here ? row[c_at] : 0.0f, to.x[j] = is_here ? row[x_at] : 0.0f;
    }
    return to;
  };
  // The first warp computes softplus(dt + dt_bias) and the decay of 32 rows of a part at once, of a row in each lane.
  const auto load_dt = [&](uint32_t begin) {
    const uint32_t r = min(begin + lane, parts.end_of(begin) - 1);
    return begin < parts.replayed
               ? saved(run.half, r)[columns + h]
               : args.buffer<const float>(
                     binding::SsmScan::dt)[static_cast<uint64_t>(first + r - parts.replayed) * c.n_heads + h];
  };

  ScanTokens& tokens = reinterpret_cast<ScanTokens*>(shared)[warp];
  auto* sums = reinterpret_cast<ScanSums*>(reinterpret_cast<ScanTokens*>(shared) + n_warps) + warp;
  const bool is_first_warp = warp == 0, is_last_warp = warp + 1 == n_warps;
  const float a = args.buffer<const float>(binding::SsmScan::a)[h],
              dt_bias = args.buffer<const float>(binding::SsmScan::dt_bias)[h],
              skip = args.buffer<const float>(binding::SsmScan::d)[h];
  Loaded loaded = load(0);
  float raw_dt = is_first_warp ? load_dt(0) : 0.0f, dt = 0.0f, decay = 0.0f;
  const uint32_t n_steps = parts.n_chunks() + n_warps - 1;
  for (uint32_t step = 0, begin = 0; step < n_steps; ++step) {
    if (step >= warp && begin < parts.all) {
      const uint32_t n_here = parts.chunk(begin), in_part = begin - parts.begin_of(begin), next = begin + n_here;
      ScanSums &in = sums[step % 2 * n_warps], &out = sums[(1 - step % 2) * n_warps + 1];
      __syncwarp();  // All lanes have read the tokens of the last chunk.
#pragma unroll
      for (uint32_t j = 0; j < kScanTokens; ++j)
        tokens.b[j][lane] = loaded.b[j], tokens.c[j][lane] = loaded.c[j], tokens.x[j][lane] = loaded.x[j];
      if (is_first_warp) {
        if (in_part % 32 == 0) {
          dt = exact::softplus(raw_dt + dt_bias);
          decay = exact::exp(dt * a);
        }
        if (lane / kScanTokens == in_part % 32 / kScanTokens)
          in.dt[lane % kScanTokens] = dt, in.decay[lane % kScanTokens] = decay;
        if (next < parts.all && (next - parts.begin_of(next)) % 32 == 0) raw_dt = load_dt(next);
      }
      if (next < parts.all) loaded = load(next);
      __syncwarp();
      if (begin >= parts.certain) {
        if (begin == parts.certain) store(entry(slot));
#pragma unroll 1
        for (uint32_t j = 0; j < n_here; ++j) {
          float* to = saved(1 - run.half, begin + j - parts.certain);
          if (is_first_warp && has_column) to[x_at] = tokens.x[j][lane];
          // The heads of a group read the same B and C. The first of them saves both.
          if (tile == 0 && h % heads_of_group == 0 && has_row)
            to[b_at] = tokens.b[j][lane], to[c_at] = tokens.c[j][lane];
          if (tile == 0 && is_first_warp && lane == 0)
            to[columns + h] = args.buffer<const float>(
                binding::SsmScan::dt)[static_cast<uint64_t>(first + begin + j - parts.replayed) * c.n_heads + h];
        }
      }
      if (!is_last_warp && lane < n_here) out.dt[lane] = in.dt[lane], out.decay[lane] = in.decay[lane];
      // The last warp adds the part of x. A replayed row has no y.
      const auto finish = [&](uint32_t j, float y) {
        if (!is_last_warp)
          out.y[j][lane] = y;
        else if (begin >= parts.replayed && has_column)
          args.buffer<float>(binding::SsmScan::y)[static_cast<uint64_t>(first + begin + j - parts.replayed) * inner +
                                                  h * c.head_dim + column] = __fmaf_rn(skip, tokens.x[j][lane], y);
      };
      // Two tokens at once, because the sums of one are a chain.
      uint32_t j = 0;
#pragma unroll 1
      for (; j + 1 < n_here; j += 2) {
        const float *b = tokens.b[j], *of_c = tokens.c[j], e = in.decay[j], e_next = in.decay[j + 1];
        const float u = in.dt[j] * tokens.x[j][lane], u_next = in.dt[j + 1] * tokens.x[j + 1][lane];
        float y = is_first_warp ? 0.0f : in.y[j][lane], y_next = is_first_warp ? 0.0f : in.y[j + 1][lane];
        state.each_row([&](uint32_t i) {
          const float now = __fmaf_rn(element(b, i), u, state.s[i] * e);
          y = __fmaf_rn(now, element(of_c, i), y);
          state.s[i] = __fmaf_rn(element(b + kScanRows, i), u_next, now * e_next);
          y_next = __fmaf_rn(state.s[i], element(of_c + kScanRows, i), y_next);
        });
        finish(j, y);
        finish(j + 1, y_next);
      }
      if (j < n_here) {
        const float *b = tokens.b[j], *of_c = tokens.c[j], e = in.decay[j], u = in.dt[j] * tokens.x[j][lane];
        float y = is_first_warp ? 0.0f : in.y[j][lane];
        state.each_row([&](uint32_t i) {
          state.s[i] = __fmaf_rn(element(b, i), u, state.s[i] * e);
          y = __fmaf_rn(state.s[i], element(of_c, i), y);
        });
        finish(j, y);
      }
      begin = next;
      if (begin == parts.saved) store(entry(run.save_to));
    }
    __syncthreads();
  }
  if (parts.certain == parts.all) store(entry(slot));
}
