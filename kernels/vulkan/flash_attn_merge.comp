// Merges the chunks of FLASH_ATTN that several workgroups computed (attend.glsl with SPLIT), in ascending order: m' =
// max(m, m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l * a), o = fma(o_c, b, o * a). Then y = o * (1 /
// l). A part is the result of one chunk for one head: m, l and the v_head_dim values of o.
// Grid: (heads, tokens). Each workgroup merges one head of one token; each invocation computes every 128th value.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendWidth) in;
PUSH(FlashAttnMerge);

Floats part_of(uint chunk) {
  return Floats(p.parts + ((uint64_t(chunk) * gl_NumWorkGroups.y + row()) * p.n_heads + gl_WorkGroupID.x) *
                              (p.v_head_dim + 2) * 4u);
}

void main() {
  uint position = Words(p.positions).v[row()], last = position / kAttendWidth;
  uint first = (p.window > 0u && position >= p.window ? position - p.window + 1 : 0) / kAttendWidth;
  for (uint i = gl_LocalInvocationID.x; i < p.v_head_dim; i += kAttendWidth) {
    Floats part = part_of(first);
    float most = part.v[0], sum = part.v[1], o = part.v[2 + i];
    for (uint chunk = first + 1; chunk <= last; ++chunk) {
      part = part_of(chunk);
      float new_most = part.v[0] > most ? part.v[0] : most;
      float a = exact_exp(most - new_most), b = exact_exp(part.v[0] - new_most);
      o = ZRT_FMA(part.v[2 + i], b, o * a);
      sum = ZRT_FMA(part.v[1], b, sum * a);
      most = new_most;
    }
    Floats(float_row(p.y, row() * p.n_heads + gl_WorkGroupID.x, p.v_head_dim)).v[i] = o * rcp(sum);
  }
}
