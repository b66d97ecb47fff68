// Computes KV_WRITE_BATCHED: stores each token's rows of K and V in the token's cells of the KV cache (defined by
// kernels/cpu/kv_write_batched.cpp). Each workgroup stores one token. Its eight waves share the token's heads, those of
// K first.
#include "kernels/rdna/kv_store.h"

namespace zinc_rt::rdna {

template <class Store>
ZRT_DEVICE void write_token(const OpArgs& args) {
  using Operand = operand::KvWriteBatched;
  using Symbol = symbol::KvWrite;
  const uint32_t nk = dim(args, Symbol::nk), nv = dim(args, Symbol::nv), pages_per_slot = dim(args, Symbol::m),
                 t = group(0), k_dim = constants<push::KvWriteBatched>(args).head_dim, n_heads = nk / k_dim,
                 v_dim = nv / n_heads;
  const auto pos = (uint32_t)buffer<const int32_t>(args, Operand::pos)[t];
  const auto page = (uint64_t)buffer<const int32_t>(
      args, Operand::page_table)[(uint64_t)buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot + pos / 16];
  uint8_t *k_part = buffer<uint8_t>(args, Operand::kv_k) + page * args.symbols[Symbol::pitch_kv_k],
          *v_part = buffer<uint8_t>(args, Operand::kv_v) + page * args.symbols[Symbol::pitch_kv_v];
  for (uint32_t i = thread() / kWave; i < 2 * n_heads; i += 256 / kWave) {
    const uint32_t head = i % n_heads;
    if (i < n_heads)
      Store::store({buffer<const float>(args, Operand::k) + (uint64_t)t * nk + head * k_dim, head, n_heads, k_dim},
                   k_part, pos % 16, args.symbols[Symbol::dtype_kv_k], true);
    else
      Store::store({buffer<const float>(args, Operand::v) + (uint64_t)t * nv + head * v_dim, head, n_heads, v_dim},
                   v_part, pos % 16, args.symbols[Symbol::dtype_kv_k], false);
  }
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(kv_write_batched, 256) {
  zinc_rt::rdna::write_token<zinc_rt::rdna::TokenStore>(args);
}
ZRT_KERNEL(kv_write_batched_integer, 256) {
  zinc_rt::rdna::write_token<zinc_rt::rdna::IntegerStore>(args);
}
