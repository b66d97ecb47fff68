// Computes EMBED: y[t] = scale * table[id], converted to float, where id is the token's id (id_of). An id outside the
// table gives a row of NaN. Each workgroup computes one token's row; each thread converts four neighbouring values at a
// time. Each weight format F (formats.h) has its own kernel. Defined by kernels/cpu/embed.cpp.
#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

// Returns the id of token t, or -1 if it names no word of the slot table.
ZRT_DEVICE int32_t id_of(const OpArgs& args, uint32_t t) {
  using Operand = operand::Embed;
  const int32_t id = buffer<const int32_t>(args, Operand::ids)[t];
  const auto* slots = buffer<const int32_t>(args, Operand::slots);
  if (id >= 0 || slots == nullptr) return id;
  const uint32_t s = dim(args, symbol::Embed::s), fields = dim(args, symbol::Embed::fields);
  const auto slot = (uint32_t)buffer<const int32_t>(args, Operand::slot)[t];
  const auto field = (uint32_t)(-1 - id);
  return slot < s && field < fields ? slots[(uint64_t)slot * fields + field] : -1;
}

template <class F>
ZRT_DEVICE void embed(const OpArgs& args) {
  using Operand = operand::Embed;
  const uint32_t v = dim(args, symbol::Embed::v), d = dim(args, symbol::Embed::d), t = group(0);
  const auto id = (uint32_t)id_of(args, t);
  const float scale = constants<push::Embed>(args).scale;
  float* y = buffer<float>(args, Operand::y) + (uint64_t)t * d;
  const uint8_t* row = buffer<const uint8_t>(args, Operand::table) + (uint64_t)(id < v ? id : 0) * row_bytes_of<F>(d);
  for (uint32_t i = thread() * 4; i < d; i += 1024) {
    float w[4];
    if constexpr (F::kBlock == 1) {
      for (uint32_t k = 0; k < 4; ++k) w[k] = i + k < d ? F::value(((const typename F::Block*)row)[i + k]) : 0.0f;
    } else {
      widen4<F>(row, i, w);
    }
    for (uint32_t k = 0; k < 4; ++k)
      if (i + k < d) y[i + k] = id >= v ? quiet_nan() : scale != 1.0f ? w[k] * scale : w[k];
  }
}

}  // namespace zinc_rt::rdna

#define ZRT_EMBED(name, F)                        \
  ZRT_KERNEL(embed_##name, 256) {                 \
    zinc_rt::rdna::embed<zinc_rt::rdna::F>(args); \
  }
ZRT_QUANT_FORMATS(ZRT_EMBED)
ZRT_FLOAT_FORMATS(ZRT_EMBED)
