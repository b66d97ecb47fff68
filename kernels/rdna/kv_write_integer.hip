// KV_WRITE_BATCHED with a cache of integers (kernels/common/kv_integer.h, kernels/cpu/quant/integer_kv.h). A workgroup has
// a token, its waves the heads of K and of V.
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

struct Head {
  const float* x;
  uint32_t head, n_heads, head_dim;
};
// By a wave: put(i, code) for the values, and the scale.
template <class Put>
ZRT_DEVICE void write_head(const Head& h, uint8_t* part, uint32_t token, const Put& put) {
  const uint32_t lane = thread() % kWave;
  float amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
  for (uint32_t i = lane; i < h.head_dim; i += kWave) {
    const float a = h.x[i] < 0 ? -h.x[i] : h.x[i];
    amax = a > amax ? a : amax;
    finite = finite + h.x[i] * 0.0f;
  }
  for (uint32_t other = 16; other > 0; other /= 2) {
    const float a = from_lane(amax, lane ^ other);
    amax = a > amax ? a : amax;
    finite = finite + from_lane(finite, lane ^ other);
  }
  const bool is_finite = finite == 0.0f, is_usable = is_finite && amax >= 0x1p-100f;
  uint16_t d = is_finite ? 0 : kv_integer::kNanScale;
  if (is_usable) d = (uint16_t)((f32_bits(amax * (1.0f / digits::kMost)) + 0xFFFFu) >> 16);
  const float inverse = is_usable ? exact::rcp(bf16_to_f32(d)) : 0.0f;
  for (uint32_t i = lane; i < h.head_dim; i += kWave) {
    const float code = is_usable ? exact::round_int(h.x[i] * inverse) : 0.0f;
    put(i, (int16_t)(code > digits::kMost ? digits::kMost : code < -digits::kMost ? -digits::kMost : code));
  }
  if (lane == 0) ((uint16_t*)(part + kv_integer::scales_at(h.head, h.n_heads, h.head_dim)))[token] = d;
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(kv_write_batched_integer, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::KvWriteBatched;
  const uint32_t nk = dim(args, 0), nv = dim(args, 1), pages_per_slot = dim(args, 2), t = group(0),
                 k_dim = constants<push::KvWriteBatched>(args).head_dim, n_heads = nk / k_dim, v_dim = nv / n_heads;
  const auto pos = (uint32_t)buffer<const int32_t>(args, Operand::pos)[t];
  const auto page = (uint64_t)buffer<const int32_t>(
      args, Operand::page_table)[(uint64_t)buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot + pos / 16];
  const uint32_t token = pos % 16;
  uint8_t *k_part = buffer<uint8_t>(args, Operand::kv_k) + page * args.symbols[4],
          *v_part = buffer<uint8_t>(args, Operand::kv_v) + page * args.symbols[5];
  for (uint32_t i = thread() / kWave; i < 2 * n_heads; i += 256 / kWave) {
    const uint32_t head = i % n_heads;
    if (i < n_heads) {
      uint8_t* codes = k_part + kv_integer::codes_at(head, k_dim);
      const float* x = buffer<const float>(args, Operand::k) + (uint64_t)t * nk + head * k_dim;
      write_head({x, head, n_heads, k_dim}, k_part, token,
                 [&](uint32_t at, int16_t code) { *(int16_t*)(codes + kv_integer::key_at(token, at)) = code; });
    } else {
      uint8_t* codes = v_part + kv_integer::codes_at(head, v_dim);
      const float* x = buffer<const float>(args, Operand::v) + (uint64_t)t * nv + head * v_dim;
      write_head({x, head, n_heads, v_dim}, v_part, token, [&](uint32_t at, int16_t code) {
        *(int16_t*)(codes + kv_integer::value_at(token, at, v_dim)) = code;
      });
    }
  }
}
