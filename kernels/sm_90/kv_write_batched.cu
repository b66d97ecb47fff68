// KV_WRITE_BATCHED, alone and after the norm and rotation of its heads (RMS_NORM_FUSED_ROPE_KV_WRITE).
#include "kernels/sm_90/kv.cuh"

using namespace zinc_rt::cuda;

// A workgroup a token. Symbols: n, nk, nv, m, type, pitch of K, pitch of V.
extern "C" __global__ void kv_write_batched(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, nk = args.dim(1), nv = args.dim(2), type = args.symbols[4];
  if (t >= args.dim(0)) return;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(2)[t]);
  const int32_t* pages =
      args.buffer<const int32_t>(4) + static_cast<uint64_t>(args.buffer<const int32_t>(3)[t]) * args.dim(3);
  const auto page = static_cast<uint64_t>(pages[pos / 16]);
  store_cell(args.buffer<const float>(0) + static_cast<uint64_t>(t) * nk,
             args.buffer<uint8_t>(5) + page * args.symbols[5] + pos % 16 * cell_bytes(type, nk), 0, nk, type);
  store_cell(args.buffer<const float>(1) + static_cast<uint64_t>(t) * nv,
             args.buffer<uint8_t>(6) + page * args.symbols[6] + pos % 16 * cell_bytes(type, nv), 0, nv, type);
}

// Grid: tokens; in y `q_parts` parts of q, `k_parts` of k, and one for v, where a part is so many whole heads.
// Symbols: n, nq, nk, nv, m, p, type, pitch of K, pitch of V, q_parts, k_parts. Shared: the largest part, and
// rms_floats of it.
extern "C" __global__ void rms_norm_fused_rope_kv_write(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::RmsNormFusedRopeKvWrite>();
  const uint32_t t = blockIdx.x, nq = args.dim(1), nk = args.dim(2), nv = args.dim(3), type = args.symbols[6];
  const uint32_t q_parts = args.symbols[9], k_parts = args.symbols[10];
  if (t >= args.dim(0)) return;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(5)[t]);
  const int32_t* pages =
      args.buffer<const int32_t>(8) + static_cast<uint64_t>(args.buffer<const int32_t>(6)[t]) * args.dim(4);
  const auto page = static_cast<uint64_t>(pages[pos / 16]);
  if (blockIdx.y == q_parts + k_parts) {
    store_cell(args.buffer<const float>(2) + static_cast<uint64_t>(t) * nv,
               args.buffer<uint8_t>(10) + page * args.symbols[8] + pos % 16 * cell_bytes(type, nv), 0, nv, type);
    return;
  }
  const bool is_q = blockIdx.y < q_parts;
  const uint32_t width = is_q ? nq / q_parts : nk / k_parts, first = (is_q ? blockIdx.y : blockIdx.y - q_parts) * width;
  const float* x = args.buffer<const float>(is_q ? 0 : 1) + static_cast<uint64_t>(t) * (is_q ? nq : nk) + first;
  const float* w = args.buffer<const float>(is_q ? 3 : 4);
  const float* table = pos < args.dim(5) ? args.buffer<const float>(7) + static_cast<uint64_t>(pos) * c.n_rot : nullptr;
  float* y = shared;
  if (w != nullptr) rms_norm_row(x, w, y, width, c.head_dim, c.eps, shared + width);
  rope_heads(w != nullptr ? y : x, table, y, width / c.head_dim, c.head_dim, c.n_rot, c.neox != 0);
  __syncthreads();
  if (is_q) {
    float* out = args.buffer<float>(11) + static_cast<uint64_t>(t) * nq + first;
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) out[i] = y[i];
  } else {
    store_cell(y, args.buffer<uint8_t>(9) + page * args.symbols[7] + pos % 16 * cell_bytes(type, nk), first, width,
               type);
  }
}
