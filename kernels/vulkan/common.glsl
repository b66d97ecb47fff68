// What all kernels include: access to memory by address, the push constants, and the place of an invocation in the
// grid.
// An invocation is what CUDA calls a thread. Invocations form subgroups (warps, waves), and subgroups form a workgroup,
// which has memory of its own (`shared`). Floats(address).v[i] is the i-th float from an address on; the types after it
// do the same for other elements.
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

// row() returns the workgroup's place on the grid's second axis, in most kernels a row. column() returns the
// invocation's place along the first axis.
uint row() { return gl_WorkGroupID.y; }
uint column() { return gl_GlobalInvocationID.x; }
// Returns `address`, or `other` if address is 0, which stands for an absent operand. It is needed where a read is
// skipped if the operand is absent: Mesa's llvmpipe (25.2 of Ubuntu 24.04) carries out a read that is the same in all
// invocations of a subgroup even if none of them reaches it.
uint64_t or_else(uint64_t address, uint64_t other) { return address != 0 ? address : other; }
// Returns the address of row r of a matrix with n floats per row.
uint64_t float_row(uint64_t base, uint r, uint n) { return base + uint64_t(r) * n * 4u; }
