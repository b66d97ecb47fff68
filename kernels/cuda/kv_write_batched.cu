// KV_WRITE_BATCHED, which writes K and V of each token to the KV cache, and RMS_NORM_FUSED_ROPE_KV_WRITE, which
// normalizes and rotates the heads of q and k before.
#include "kernels/cuda/kv.cuh"
#include "kernels/cuda/rope_head.cuh"

using namespace zinc_rt::cuda;

// Writes K and V of token blockIdx.x to its cells.
template <bool kIsRotated>
__device__ __forceinline__ void write_token(const OpArgs& args) {
  let_next_start();
  wait_for_inputs();
  const uint32_t t = blockIdx.x, nk = args.dim(symbol::KvWrite::nk), nv = args.dim(symbol::KvWrite::nv),
                 type = args.symbols[symbol::KvWrite::dtype_kv_k];
  if (t >= args.dim(symbol::KvWrite::rows)) return;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::KvWriteBatched::pos)[t]);
  const int32_t* pages = args.buffer<const int32_t>(binding::KvWriteBatched::page_table) +
                         static_cast<uint64_t>(args.buffer<const int32_t>(binding::KvWriteBatched::slot)[t]) *
                             args.dim(symbol::KvWrite::m);
  const auto page = static_cast<uint64_t>(pages[pos / 16]);
  const uint32_t head_dim = args.constants<push::KvWriteBatched>().head_dim, n_heads = nk / head_dim;
  store_values<kIsRotated>(
      args.buffer<const float>(binding::KvWriteBatched::k) + static_cast<uint64_t>(t) * nk,
      {args.buffer<uint8_t>(binding::KvWriteBatched::kv_k) + page * args.symbols[symbol::KvWrite::pitch_kv_k], pos % 16,
       type, n_heads, head_dim, true},
      0, nk, threadIdx.x, blockDim.x);
  store_values<kIsRotated>(
      args.buffer<const float>(binding::KvWriteBatched::v) + static_cast<uint64_t>(t) * nv,
      {args.buffer<uint8_t>(binding::KvWriteBatched::kv_v) + page * args.symbols[symbol::KvWrite::pitch_kv_v], pos % 16,
       type, n_heads, nv / n_heads, false},
      0, nv, threadIdx.x, blockDim.x);
}

// KV_WRITE_BATCHED. Grid: one workgroup per token.
extern "C" __global__ void kv_write_batched(const __grid_constant__ OpArgs args) {
  write_token<false>(args);
}
extern "C" __global__ void kv_write_rotated(const __grid_constant__ OpArgs args) {
  write_token<true>(args);
}

// The kernel of rope_kv_write_heads and rope_kv_write_rotated.
template <bool kIsRotated>
__device__ __forceinline__ void write_heads(const OpArgs& args) {
  constexpr uint32_t kMost = 256;
  __shared__ __align__(16) float rows[4][kMost];
  const auto c = args.constants<push::RmsNormFusedRopeKvWrite>();
  const uint32_t t = blockIdx.x, lane = threadIdx.x % 32, nq = args.dim(symbol::RopeKvWrite::nq),
                 nk = args.dim(symbol::RopeKvWrite::nk), nv = args.dim(symbol::RopeKvWrite::nv),
                 type = args.symbols[symbol::RopeKvWrite::dtype_kv_k], n_q = nq / c.head_dim, n_k = nk / c.head_dim,
                 v_part = args.symbols[symbol::RopeKvWrite::v_part], part = blockIdx.y * 4 + threadIdx.x / 32;
  const bool is_q = part < n_q, is_v = part >= n_q + n_k;
  let_next_start();
  WarpHead<kMost / 16> head;
  head.ask_norm(is_v ? nullptr
                     : args.buffer<const float>(is_q ? binding::RmsNormFusedRopeKvWrite::q_norm
                                                     : binding::RmsNormFusedRopeKvWrite::k_norm),
                c.head_dim);
  const bool is_token = has_row(args, t);
  wait_for_places(args);
  uint32_t pos = 0;
  uint64_t page = 0;
  if (is_token) {
    pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::RmsNormFusedRopeKvWrite::pos)[t]);
    const auto slot = static_cast<uint64_t>(args.buffer<const int32_t>(binding::RmsNormFusedRopeKvWrite::slot)[t]);
    page = static_cast<uint64_t>(args.buffer<const int32_t>(
        binding::RmsNormFusedRopeKvWrite::page_table)[slot * args.dim(symbol::RopeKvWrite::m) + pos / 16]);
  }
  // The table of cosines and sines never changes, so it may be read before the inputs are ready.
  head.ask_turns(
      is_token && (is_v || pos < args.dim(symbol::RopeKvWrite::p)),
      args.buffer<const float>(binding::RmsNormFusedRopeKvWrite::table) + static_cast<uint64_t>(pos) * c.n_rot,
      is_v ? 0 : c.n_rot);
  wait_for_inputs();
  if (!is_token) return;
  // n: values of the row that this warp computes, from `first` on.
  const uint32_t width = is_q   ? nq
                         : is_v ? nv
                                : nk,
                 first = is_v ? (part - n_q - n_k) * v_part : (is_q ? part : part - n_q) * c.head_dim;
  if (first >= width) return;
  const uint32_t n = is_v ? min(v_part, nv - first) : c.head_dim;
  head.ask_values(args.buffer<const float>(is_q   ? binding::RmsNormFusedRopeKvWrite::q
                                           : is_v ? binding::RmsNormFusedRopeKvWrite::v
                                                  : binding::RmsNormFusedRopeKvWrite::k) +
                      static_cast<uint64_t>(t) * width + first,
                  n);
  float* y = rows[threadIdx.x / 32];
  head.make(y, c.eps, c.neox != 0);
  if (is_q) {
    float* out = args.buffer<float>(binding::RmsNormFusedRopeKvWrite::q_out) + static_cast<uint64_t>(t) * nq + first;
    for (uint32_t i = lane; i < n; i += 32) out[i] = y[i];
  } else {
    store_values<kIsRotated>(
        y,
        {args.buffer<uint8_t>(is_v ? binding::RmsNormFusedRopeKvWrite::kv_v : binding::RmsNormFusedRopeKvWrite::kv_k) +
             page * args.symbols[is_v ? symbol::RopeKvWrite::pitch_kv_v : symbol::RopeKvWrite::pitch_kv_k],
         pos % 16, type, n_k, width / n_k, !is_v},
        first, n, lane, 32);
  }
}

// RMS_NORM_FUSED_ROPE_KV_WRITE for heads of up to 256 values. Each warp computes a head of q or k, or v_part values of
// v, and does not wait for other warps. Grid: (tokens, the work of four warps).
extern "C" __global__ void __launch_bounds__(128) rope_kv_write_heads(const __grid_constant__ OpArgs args) {
  write_heads<false>(args);
}
extern "C" __global__ void __launch_bounds__(128) rope_kv_write_rotated(const __grid_constant__ OpArgs args) {
  write_heads<true>(args);
}

// RMS_NORM_FUSED_ROPE_KV_WRITE for larger heads. Grid: (tokens, parts). Parts 0 to q_parts - 1 are of q, the next
// k_parts of k, and the last one is v. A part is whole heads. Shared memory: the largest part, and rms_floats for it.
extern "C" __global__ void rms_norm_fused_rope_kv_write(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  let_next_start();
  wait_for_inputs();
  const auto c = args.constants<push::RmsNormFusedRopeKvWrite>();
  const uint32_t t = blockIdx.x, nq = args.dim(symbol::RopeKvWrite::nq), nk = args.dim(symbol::RopeKvWrite::nk),
                 nv = args.dim(symbol::RopeKvWrite::nv), type = args.symbols[symbol::RopeKvWrite::dtype_kv_k];
  const uint32_t q_parts = args.symbols[symbol::RopeKvWrite::q_parts],
                 k_parts = args.symbols[symbol::RopeKvWrite::k_parts], n_heads = nk / c.head_dim;
  if (t >= args.dim(symbol::RopeKvWrite::rows)) return;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::RmsNormFusedRopeKvWrite::pos)[t]);
  const int32_t* pages = args.buffer<const int32_t>(binding::RmsNormFusedRopeKvWrite::page_table) +
                         static_cast<uint64_t>(args.buffer<const int32_t>(binding::RmsNormFusedRopeKvWrite::slot)[t]) *
                             args.dim(symbol::RopeKvWrite::m);
  const auto page = static_cast<uint64_t>(pages[pos / 16]);
  if (blockIdx.y == q_parts + k_parts) {
    store_values<false>(args.buffer<const float>(binding::RmsNormFusedRopeKvWrite::v) + static_cast<uint64_t>(t) * nv,
                        {args.buffer<uint8_t>(binding::RmsNormFusedRopeKvWrite::kv_v) +
                             page * args.symbols[symbol::RopeKvWrite::pitch_kv_v],
                         pos % 16, type, n_heads, nv / n_heads, false},
                        0, nv, threadIdx.x, blockDim.x);
    return;
  }
  const bool is_q = blockIdx.y < q_parts;
  const uint32_t width = is_q ? nq / q_parts : nk / k_parts, first = (is_q ? blockIdx.y : blockIdx.y - q_parts) * width;
  const float* x =
      args.buffer<const float>(is_q ? binding::RmsNormFusedRopeKvWrite::q : binding::RmsNormFusedRopeKvWrite::k) +
      static_cast<uint64_t>(t) * (is_q ? nq : nk) + first;
  const float* w = args.buffer<const float>(is_q ? binding::RmsNormFusedRopeKvWrite::q_norm
                                                 : binding::RmsNormFusedRopeKvWrite::k_norm);
  const float* table =
      pos < args.dim(symbol::RopeKvWrite::p)
          ? args.buffer<const float>(binding::RmsNormFusedRopeKvWrite::table) + static_cast<uint64_t>(pos) * c.n_rot
          : nullptr;
  float* y = shared;
  if (w != nullptr) rms_norm_row(x, w, y, width, c.head_dim, c.eps, shared + width);
  rope_heads(w != nullptr ? y : x, table, y, width / c.head_dim, c.head_dim, c.n_rot, c.neox != 0);
  __syncthreads();
  if (is_q) {
    float* out = args.buffer<float>(binding::RmsNormFusedRopeKvWrite::q_out) + static_cast<uint64_t>(t) * nq + first;
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) out[i] = y[i];
  } else {
    store_values<false>(y,
                        {args.buffer<uint8_t>(binding::RmsNormFusedRopeKvWrite::kv_k) +
                             page * args.symbols[symbol::RopeKvWrite::pitch_kv_k],
                         pos % 16, type, n_heads, c.head_dim, true},
                        first, width, threadIdx.x, blockDim.x);
  }
}
