// What all kernels begin with: memory by address, the push constants and the invocation's place.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "push.h"

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer FloatQuads { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints { int v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Quads { uvec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };

#define PUSH(Type) layout(push_constant, scalar) uniform Push { Type p; }

uint row() { return gl_WorkGroupID.y; }
uint column() { return gl_GlobalInvocationID.x; }
// What to read in place of memory that may be absent, whose address is 0. Mesa's llvmpipe (25.2 of Ubuntu 24.04) reads what
// all invocations of a subgroup read alike even if none of them gets to the read, so such a read needs an address.
uint64_t or_else(uint64_t address, uint64_t other) { return address != 0 ? address : other; }
// The address of row r of rows of n floats.
uint64_t float_row(uint64_t base, uint r, uint n) { return base + uint64_t(r) * n * 4u; }
