// Stores a graph as one flat little-endian byte buffer, which may be mapped from disk. Its layout (offset, bytes,
// field):
//   0   4  magic "ZIR\0"
//   4   4  version = 1
//   8   4  stage
//   12  4  n_buffers
//   16  4  n_nodes
//   20  4  n_string_bytes
//   24  4  name: offset in the strings     28  4  name: bytes
//   32     buffer records, 36 bytes each: name offset, name bytes, tensor offset, tensor bytes (u32 each),
//          class u8, dtype u8, rank u8, dim kinds u8 (2 bits an extent, outermost lowest), 4 x extent u32
//   ...    node records, 172 bytes each: op u16, stage u8, inplace u8, layer i32, n_inputs u8, n_outputs u8, 2 zero
//          bytes, inputs 16 x i32, outputs 16 x i32, attrs 8 x u32
//   ...    strings
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace zinc_rt::ir {

std::vector<std::byte> serialize(const Graph& graph);
// Reads a graph back. Checks every count, offset and enum against the buffer. Errors: kCorrupt. It does not verify the
// graph (verify.h).
Result<Graph> deserialize(std::span<const std::byte> bytes);

}  // namespace zinc_rt::ir
