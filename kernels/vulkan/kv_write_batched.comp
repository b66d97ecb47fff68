// KV_WRITE_BATCHED: stores each token's rows of K and V in its cell of the layer's cache: cell pos % 16 of the page
// pages[slot][pos / 16]. In a page lie 16 cells of K, and from v_offset on 16 of V. FORMAT is the type of the cache:
// f32, f16 (rounded to nearest even), or q8_0: blocks of 32 with d = f16(amax / 127) and q = round(x / d) held to
// -127..127, all 0 where d is 0; a NaN or an infinity in the block, or a d beyond f16, makes d NaN.
// Grid: (runs of 32 of K and of V / 64, tokens), a run an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kWidth) in;
PUSH(KvWrite);

void store_block(Floats x, uint first, uint64_t to) {
  float amax = 0.0, finite = 0.0;
  for (uint i = first; i < first + 32; ++i) {
    float a = abs(x.v[i]);
    amax = a > amax ? a : amax;
    finite = finite + x.v[i] * 0.0;
  }
  uint d = f32_to_f16(amax * 7.874015748031496e-3);
  bool is_nan = finite != 0.0 || d == 0x7c00u;
  if (is_nan) d = 0x7e00u;
  bool usable = !is_nan && d != 0u;
  float inverse = usable ? rcp(f16_to_f32(d)) : 0.0;
  Halves(to).v[0] = uint16_t(d);
  for (uint i = 0; i < 32; ++i) {
    float q = usable ? round_int(x.v[first + i] * inverse) : 0.0;
    Bytes(to + 2).v[i] = uint8_t(int(q > 127.0 ? 127.0 : q < -127.0 ? -127.0 : q) & 255);
  }
}

void store(Floats x, uint first, uint n, uint64_t cell) {
  if (FORMAT == kQ8_0) {
    store_block(x, first, cell + first / 32 * 34u);
    return;
  }
  for (uint i = first; i < min(first + kKvRun, n); ++i) {
    if (FORMAT == kF32) Floats(cell).v[i] = x.v[i];
    else Halves(cell).v[i] = uint16_t(f32_to_f16(x.v[i]));
  }
}

uint cell_bytes(uint n) { return FORMAT == kF32 ? n * 4 : FORMAT == kF16 ? n * 2 : n / 32 * 34; }

void main() {
  uint run = column(), k_runs = (p.nk + kKvRun - 1) / kKvRun, v_runs = (p.nv + kKvRun - 1) / kKvRun;
  if (run >= k_runs + v_runs) return;
  uint position = uint(Ints(p.positions).v[row()]), slot = uint(Ints(p.slots).v[row()]);
  uint64_t page = p.cache + uint64_t(Words(p.pages).v[slot * p.width + position / 16]) * p.page_bytes;
  if (run < k_runs)
    store(Floats(float_row(p.k, row(), p.nk)), run * kKvRun, p.nk, page + position % 16 * cell_bytes(p.nk));
  else
    store(Floats(float_row(p.v, row(), p.nv)), (run - k_runs) * kKvRun, p.nv,
          page + p.v_offset + position % 16 * cell_bytes(p.nv));
}
