// Computes RMS_NORM_FUSED_ROPE_KV_WRITE (defined by kernels/cpu/rms_norm_fused_rope_kv_write.cpp). Heads of q and k are
// normalized and rotated. Then q goes to q_out, and k and v go to the token's cells of the KV cache.
// Grid: (tokens; heads of q, then of k, then of v). Each workgroup is one wave and computes one head.
#include "kernels/rdna/kv_store.h"
#include "kernels/rdna/norm.h"

namespace zinc_rt::rdna {

// Writes the normalized and rotated head x to `head`, in LDS, which may be read when this returns. w is null if there
// is no norm. turns: the (cos, sin) of the token's position, or null if the position is outside the table; then the
// head is NaN.
ZRT_DEVICE void make_head(const float* x, const float* w, float inverse, const float* turns,
                          const push::RmsNormFusedRopeKvWrite& c, float* head) {
  const uint32_t lane = thread(), n = c.head_dim, half = c.n_rot / 2;
  float r = 1.0f;
  if (w != nullptr) {
    const auto value = [&](uint32_t i) { return x[i]; };
    r = exact::rsqrt(__builtin_fmaf(wave_dot(value, value, n), inverse, c.eps));
  }
  for (uint32_t i = lane; i < n; i += kWave)
    head[i] = turns == nullptr ? quiet_nan() : w != nullptr ? x[i] * r * w[i] : x[i];
  workgroup_barrier();
  if (turns != nullptr)
    for (uint32_t i = lane; i < half; i += kWave) {
      const uint32_t first = c.neox != 0 ? i : 2 * i, second = c.neox != 0 ? i + half : 2 * i + 1;
      const float a = head[first], b = head[second], cosine = turns[2 * i], sine = turns[2 * i + 1];
      head[first] = __builtin_fmaf(-b, sine, a * cosine);
      head[second] = __builtin_fmaf(b, cosine, a * sine);
    }
  workgroup_barrier();
}

template <class Cells>
ZRT_DEVICE void rope_kv_write(const OpArgs& args, float* head) {
  using Operand = operand::RmsNormFusedRopeKvWrite;
  using Symbol = symbol::RopeKvWrite;
  const auto c = constants<push::RmsNormFusedRopeKvWrite>(args);
  const uint32_t nq = dim(args, Symbol::nq), nk = dim(args, Symbol::nk), nv = dim(args, Symbol::nv),
                 pages_per_slot = dim(args, Symbol::m), rows = dim(args, Symbol::p), t = group(0),
                 n_q = nq / c.head_dim, n_k = nk / c.head_dim, h = group(1);
  const auto pos = (uint32_t)buffer<const int32_t>(args, Operand::pos)[t];
  const float* turns = pos < rows ? buffer<const float>(args, Operand::table) + (uint64_t)pos * c.n_rot : nullptr;
  const float inverse = constants<RopeKvWriteConstants>(args).inverse;
  if (h < n_q) {
    const uint64_t at = (uint64_t)t * nq + h * c.head_dim;
    make_head(buffer<const float>(args, Operand::q) + at, buffer<const float>(args, Operand::q_norm), inverse, turns, c,
              head);
    float* y = buffer<float>(args, Operand::q_out) + at;
    for (uint32_t i = thread(); i < c.head_dim; i += kWave) y[i] = head[i];
    return;
  }
  const uint32_t page = (uint32_t)buffer<const int32_t>(
      args, Operand::page_table)[(uint64_t)(uint32_t)buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot +
                                 pos / 16];
  const bool is_key = h < n_q + n_k;
  const uint32_t of_kind = is_key ? h - n_q : h - n_q - n_k, dim_of_head = is_key ? c.head_dim : nv / n_k;
  uint8_t* part = is_key ? buffer<uint8_t>(args, Operand::kv_k) + (uint64_t)page * args.symbols[Symbol::pitch_kv_k]
                         : buffer<uint8_t>(args, Operand::kv_v) + (uint64_t)page * args.symbols[Symbol::pitch_kv_v];
  const float* x = is_key ? buffer<const float>(args, Operand::k) + (uint64_t)t * nk + of_kind * c.head_dim
                          : buffer<const float>(args, Operand::v) + (uint64_t)t * nv + of_kind * dim_of_head;
  if (is_key) {
    make_head(x, buffer<const float>(args, Operand::k_norm), inverse, turns, c, head);
  } else {
    for (uint32_t i = thread(); i < dim_of_head; i += kWave) head[i] = x[i];
    workgroup_barrier();
  }
  Cells::store({head, of_kind, n_k, dim_of_head}, part, pos % 16, args.symbols[Symbol::dtype_kv_k], is_key);
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(rope_kv_write, 32) {
  __shared__ float head[zinc_rt::rdna::kMostRotated];
  zinc_rt::rdna::rope_kv_write<zinc_rt::rdna::TokenStore>(args, head);
}
ZRT_KERNEL(rope_kv_write_integer, 32) {
  __shared__ float head[zinc_rt::rdna::kMostRotated];
  zinc_rt::rdna::rope_kv_write<zinc_rt::rdna::IntegerStore>(args, head);
}
