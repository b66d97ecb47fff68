// FLASH_ATTN and FLASH_ATTN_BATCHED in steps of many tokens, with the same bits as flash_attn.cu. A workgroup computes
// a tile of up to tile_tokens tokens of one slot, for one kv head, over all chunks of its history
// (flash_attn_tile.cuh).
// Grid: (kv heads, tiles that run at once). If a step has more tiles than that, each workgroup computes several, one
// after another.
#include "kernels/cuda/flash_attn_tile.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendTileThreads;

// The kernel for heads of up to 16 * kSteps values.
template <class Cell, int kSteps>
__device__ __forceinline__ void attend_tile(const OpArgs& args) {
  using T = Tile<Cell, kSteps>;
  ZRT_DYNAMIC_SHARED(uint4, shared);
  __shared__ typename T::Row row;
  wait_for_inputs();
  T tile(args, shared, row);
  tile.kv_head = blockIdx.x;
  for_own_tiles<kThreads>(args, reinterpret_cast<uint32_t*>(shared), [&](Tokens tokens) {
    const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[tokens.first]);
    tile.template run<false>(tokens, first_seen(tile.c.window, pos) / kChunk, pos / kChunk + 1);
  });
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_tile_f16_64(const __grid_constant__ OpArgs args) {
  attend_tile<F16Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f16_128(const __grid_constant__ OpArgs args) {
  attend_tile<F16Cell, 8>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f16_256(const __grid_constant__ OpArgs args) {
  attend_tile<F16Cell, 16>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f32_64(const __grid_constant__ OpArgs args) {
  attend_tile<F32Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f32_128(const __grid_constant__ OpArgs args) {
  attend_tile<F32Cell, 8>(args);
}
