// FLASH_ATTN_BATCHED in steps of few tokens, with the same bits as flash_attn.cu, for the tokens of runs. A run is
// neighbouring tokens of one slot that share K and V (attention.cuh); it is computed as a tile (flash_attn_tile.cuh).
// Each chunk of a tile leaves a record, and flash_attn_merge combines the records.
// The chunks of all tiles and kv heads form one line, and each workgroup computes an equal share of it.
// Tokens outside runs are computed by flash_attn_staged, the launch before this one. Both run at the same time: that
// launch lets this one start when its inputs are ready. This kernel has the same inputs, and reads nothing that the
// other one writes.
// Grid: a few times as many workgroups as run at once.
#include "kernels/cuda/flash_attn_tile.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendTileThreads, kTokens = kAttendRunStep / kThreads;  // kTokens: tokens per thread

// The runs of a step, in the order of their tokens.
struct Runs {
  static constexpr uint32_t kMost = kAttendRunStep / 2, kWords = kAttendRunStep / 32;
  uint32_t starts[kWords], found[kWords];  // one bit per token
  uint32_t n;
  Tokens tokens[kMost];
  uint32_t first_chunk[kMost], n_chunks[kMost];
};

// Finds the runs of a step of up to kAttendRunStep tokens. Ends with a barrier.
__device__ __forceinline__ void find_runs(const OpArgs& args, uint32_t window, Runs& runs) {
  const uint32_t n = args.dim(symbol::Attention::rows), most = args.symbols[symbol::Attention::run_tokens];
  const int32_t* positions = args.buffer<const int32_t>(binding::Attention::pos);
  find_starts<kThreads>(args, most, runs.starts);
  const auto is_start = [&](uint32_t t) { return (runs.starts[t / 32] >> t % 32 & 1) != 0; };
  uint32_t own[kTokens] = {};  // length of the run that begins at each of the thread's tokens; 0: none begins there
#pragma unroll
  for (uint32_t i = 0; i < kTokens; ++i) {
    const uint32_t t = i * kThreads + threadIdx.x;
    if (t < n && is_start(t)) {
      uint32_t end = t + 1;
      while (end < n && !is_start(end)) ++end;
      if (is_run(window, static_cast<uint32_t>(positions[t]), end - t, most)) own[i] = end - t;
    }
    const uint32_t bits = __ballot_sync(0xFFFFFFFFu, own[i] > 0);
    if (t % 32 == 0) runs.found[t / 32] = bits;
  }
  __syncthreads();
  uint32_t before[Runs::kWords + 1] = {};  // number of runs that begin in earlier words
#pragma unroll
  for (uint32_t w = 0; w < Runs::kWords; ++w) before[w + 1] = before[w] + __popc(runs.found[w]);
  if (threadIdx.x == 0) runs.n = before[Runs::kWords];
#pragma unroll
  for (uint32_t w = 0; w < Runs::kWords; ++w) {
    const uint32_t t = w * 32 + threadIdx.x % 32, n_own = own[w * 32 / kThreads];
    if (t / 32 % (kThreads / 32) != threadIdx.x / 32 || n_own == 0) continue;
    const uint32_t at = before[w] + __popc(runs.found[w] & ((1u << t % 32) - 1));
    const auto pos = static_cast<uint32_t>(positions[t]), first = first_seen(window, pos) / kChunk;
    runs.tokens[at] = {t, n_own};
    runs.first_chunk[at] = first, runs.n_chunks[at] = pos / kChunk + 1 - first;
  }
  __syncthreads();
}

// Returns the approximate time of a chunk of a tile, in units of a row's time. What is done once for all rows takes as
// long as 24 rows.
__device__ __forceinline__ uint32_t cost_of(uint32_t n_rows) {
  return n_rows + 24;
}

// The kernel for heads of up to 16 * kSteps values.
template <class Cell, int kSteps>
__device__ __forceinline__ void attend_runs(const OpArgs& args) {
  using T = Tile<Cell, kSteps>;
  ZRT_DYNAMIC_SHARED(uint4, shared);
  __shared__ typename T::Row row;
  __shared__ Runs runs;
  T tile(args, shared, row);
  find_runs(args, tile.c.window, runs);
  uint64_t all = 0;
  for (uint32_t i = 0; i < runs.n; ++i)
    all += static_cast<uint64_t>(tile.c.n_kv_heads) * runs.n_chunks[i] * cost_of(runs.tokens[i].n * tile.group);
  // A workgroup computes the chunks that begin in its share of the line.
  const uint64_t begin = all * blockIdx.x / gridDim.x, end = all * (blockIdx.x + 1) / gridDim.x;
  uint64_t at = 0;
  for (uint32_t i = 0; i < runs.n; ++i) {
    const uint32_t cost = cost_of(runs.tokens[i].n * tile.group), n_chunks = runs.n_chunks[i];
    for (tile.kv_head = 0; tile.kv_head < tile.c.n_kv_heads; ++tile.kv_head, at += n_chunks * cost) {
      if (at >= end || at + n_chunks * cost <= begin) continue;
      const uint64_t first = begin > at ? (begin - at + cost - 1) / cost : 0,
                     last = min(static_cast<uint64_t>(n_chunks), (end - at + cost - 1) / cost);
      tile.template run<true>(runs.tokens[i], runs.first_chunk[i] + static_cast<uint32_t>(first),
                              runs.first_chunk[i] + static_cast<uint32_t>(last));
      __syncthreads();
    }
  }
  let_next_start();
  // The end of a kernel tells later kernels that all kernels before it have ended, so one workgroup must wait for that.
  // If all of them waited, the workgroups that have not begun would not find room.
  if (blockIdx.x + 1 == gridDim.x) wait_for_inputs();
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_runs_f16_64(const __grid_constant__ OpArgs args) {
  attend_runs<F16Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_runs_f16_128(const __grid_constant__ OpArgs args) {
  attend_runs<F16Cell, 8>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_runs_f16_256(const __grid_constant__ OpArgs args) {
  attend_runs<F16Cell, 16>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_runs_f32_64(const __grid_constant__ OpArgs args) {
  attend_runs<F32Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_runs_f32_128(const __grid_constant__ OpArgs args) {
  attend_runs<F32Cell, 8>(args);
}
