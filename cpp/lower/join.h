// Finds nodes that a tier can run as one packet (a "join"). A tier declares patterns (ring::Ring::joins), and nodes
// match by the values that they pass to each other. For each match, alias.h does not reuse the memory that the pattern
// protects by `keep`. The tier gets the matches with the packets (ring::PacketBatch::joined).
//
// A pattern lists nodes in their order, separated by ';':
//
//   GLU|MOE_SWIGLU gate:a up:b y:h; QUANTIZE x:h y:q; keep a b; ?LINEAR x:q y:p; ?ADD x:r y:p z:r'
//
//   GLU|MOE_SWIGLU   a node with one of these ops
//   ?LINEAR          an optional node; if it does not match, the nodes after it do not match either
//   gate:a           the node's operand `gate` is present, and the pattern calls its value a; different names must be
//                    different values
//   z:r'             a value that takes the memory of the value r: an update in place
//   keep a b         the memory of these values is needed until the node in front of `keep` is done, because the tier
//                    may read it while it writes the results of that node. Lowering gives this memory to no other value
//                    before then. If a node of the match overwrites it itself, the pattern does not match.
//
// Operands that a pattern does not name may be anything.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace zinc_rt::lower {

// Kept is a buffer that a pattern protects by `keep`. No other node may overwrite the buffer before node `until` is
// done.
struct Kept {
  ir::BufferId buffer = ir::kNoBuffer;
  std::size_t until = 0;  // index in the graph of the node in front of `keep`
};
struct JoinedNodes {
  std::uint32_t pattern = 0;
  std::vector<std::size_t> nodes;  // indexes of nodes in the graph, in order
  std::size_t least = 0;           // how many of `nodes`, from the first on, are not optional
  std::vector<Kept> kept;
};

// Returns all matches, ordered by first node, then by pattern. A node may be in several matches. Errors: kInternal for
// a pattern that cannot be parsed, with the position in it.
Result<std::vector<JoinedNodes>> find_joins(const ir::Graph& graph, std::span<const std::string_view> patterns);

}  // namespace zinc_rt::lower
