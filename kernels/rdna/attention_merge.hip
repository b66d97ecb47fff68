// The second launch of attention whose histories were shared by several workgroups (attend.h). It merges the records of
// each history's chunks in ascending order, and writes y = o * (1 / sum). If `quantized` is not null, it also computes
// the QUANTIZE of y, which saves a launch.
// Grid: (tokens, pieces of 256 columns of a row of y). Each thread computes one column. A piece may contain columns of
// several heads.
#include "kernels/rdna/attend.h"
#include "kernels/rdna/quantize.h"

ZRT_KERNEL(attention_merge, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Buffer = binding::AttentionParts;
  static_assert(operand::is_same_place(Buffer::sinks, operand::FlashAttn::sinks));
  using Symbol = symbol::Attention;
  __shared__ float values[256];
  const auto c = constants<push::FlashAttn>(args);
  const uint32_t t = group(0), width = c.n_heads * c.v_head_dim, column = group(1) * 256 + thread();
  const auto pos = (uint32_t)buffer<const int32_t>(args, Buffer::pos)[t];
  if (column < width) {
    const uint32_t head = column / c.v_head_dim, of_head = column % c.v_head_dim, floats = record_floats(c.v_head_dim);
    const float* records =
        scratch<const float>(args) + ((uint64_t)t * c.n_heads + head) * args.symbols[Symbol::chunks] * floats;
    Totals<1> total{};
    const uint32_t first = first_seen_by(c, pos) / kChunk;
    for (uint32_t chunk = first; chunk <= pos / kChunk; ++chunk) {
      const float* record = records + (uint64_t)chunk * floats;
      const Totals<1> next{record[0], record[1], {record[2 + of_head]}};
      if (chunk == first)
        total = next;
      else
        merge(next, total);
    }
    add_sink(args, head, total);
    const float y = total.o[0] * exact::rcp(total.sum);
    buffer<float>(args, Buffer::y)[(uint64_t)t * width + column] = y;
    values[thread()] = y;
  }
  if (args.buffers[Buffer::quantized] == 0) return;
  workgroup_barrier();
  const uint32_t type = args.symbols[Symbol::quantized_dtype], first = group(1) * 256, wave = thread() / kWave;
  if (wave < blocks_of(type))
    write_quantized([&](uint32_t i) { return values[i - first]; }, type, args.buffers[Buffer::quantized], t, width,
                    group(1) * blocks_of(type) + wave, kOneBlock);
}
