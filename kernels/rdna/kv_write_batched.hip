// KV_WRITE_BATCHED: each token's rows of K and V into its cells (kernels/cpu/kv_write_batched.cpp).
#include "kernels/rdna/kv.h"

namespace zinc_rt::rdna {

ZRT_DEVICE void store_block(const float* x, uint8_t* at) {
  float amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
  for (int i = 0; i < 32; ++i) {
    const float a = x[i] < 0 ? -x[i] : x[i];
    amax = a > amax ? a : amax;
    finite = finite + x[i] * 0.0f;
  }
  uint16_t d = f32_to_f16(amax * (1.0f / 127.0f));
  const bool is_nan = finite != 0.0f || d == 0x7c00u;
  if (is_nan) d = 0x7e00u;
  const bool usable = !is_nan && d != 0;
  const float inverse = usable ? exact::rcp(f16_to_f32(d)) : 0.0f;
  auto& block = *(BlockQ8_0*)at;
  block.d = d;
  for (int i = 0; i < 32; ++i) {
    const float q = usable ? exact::round_int(x[i] * inverse) : 0.0f;
    block.qs[i] = (int8_t)(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
  }
}

ZRT_DEVICE void store_row(const float* x, uint8_t* to, uint32_t n, uint32_t type) {
  if (type == kF32) {
    for (uint32_t i = thread(); i < n; i += 256) ((float*)to)[i] = x[i];
  } else if (type == kF16) {
    for (uint32_t i = thread(); i < n; i += 256) ((uint16_t*)to)[i] = f32_to_f16(x[i]);
  } else {
    for (uint32_t b = thread(); b < n / 32; b += 256) store_block(x + b * 32, to + b * sizeof(BlockQ8_0));
  }
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(kv_write_batched, 256) {
  using namespace zinc_rt;
  using Operand = operand::KvWriteBatched;
  const uint32_t nk = rdna::dim(args, 0), nv = rdna::dim(args, 1), pages_per_slot = rdna::dim(args, 2),
                 type = args.symbols[3], t = rdna::group(0);
  const auto pos = (uint32_t)rdna::buffer<const int32_t>(args, Operand::pos)[t];
  const int32_t* pages = rdna::buffer<const int32_t>(args, Operand::page_table) +
                         (uint64_t)rdna::buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot;
  rdna::store_row(
      rdna::buffer<const float>(args, Operand::k) + (uint64_t)t * nk,
      rdna::cell(rdna::buffer<uint8_t>(args, Operand::kv_k), pages, pos, args.symbols[4], rdna::cache_bytes(type, nk)),
      nk, type);
  rdna::store_row(
      rdna::buffer<const float>(args, Operand::v) + (uint64_t)t * nv,
      rdna::cell(rdna::buffer<uint8_t>(args, Operand::kv_v), pages, pos, args.symbols[5], rdna::cache_bytes(type, nv)),
      nv, type);
}
