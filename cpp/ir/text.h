// Writes and reads the IR as text, for people and tests. print() and parse() are inverse. Each buffer and each node
// takes one line:
//   graph "name" stage prefill
//   buffer act.hidden activation f32 [tokens, 576]
//   buffer model.attn.q_weight[0] weight q4_k [576, 576] tensor "blk.0.attn_q.weight"
//   act.q[0] = LINEAR(act.norm[0], model.attn.q_weight[0], _) layer 0
//   act.hidden = ADD(act.hidden, act.attn_out[0]) layer 0 inplace
//   BARRIER
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace zinc_rt::ir {

// Returns "tokens", "outputs" or the number.
std::string show(Dim dim);
std::string print(const Graph& graph);
// Reads a graph, which is not verified. Errors: kInvalidArgument with the line number.
Result<Graph> parse(std::string_view text);

}  // namespace zinc_rt::ir
