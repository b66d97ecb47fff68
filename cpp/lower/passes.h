// Declares the passes, which rewrite a graph without changing a bit of its results. A fused node computes what its
// unfused nodes compute, in their order. QUANTIZE is the rounding that an integer dot applies to its input anyway
// (docs/arithmetic.md, rule 3). All passes take and return graphs with a BARRIER after every node.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "kernel/kernel_table.h"

namespace zinc_rt::lower {

// FusionOptions says which fusions fuse() applies. The comment of each member shows the nodes that are fused, and the
// fused node that replaces them.
struct FusionOptions {
  bool qkv = true;      // RMS_NORM + 3 LINEAR -> RMS_NORM_FUSED_QKV
  bool gate_up = true;  // RMS_NORM + 2 LINEAR -> RMS_NORM_FUSED_MLP_GATE_UP
  bool rope_kv = true;  // (RMS_NORM) ROPE x 2, KV_WRITE -> RMS_NORM_FUSED_ROPE_KV_WRITE
  // MOE_LINEAR x 2 -> MOE_GATE_UP; if a step has one token per slot, also MOE_LINEAR, MOE_SUM, ADD -> MOE_DOWN_ACC
  bool moe = true;
  // ADD in place + RMS_NORM -> RESIDUAL_RMS_NORM, unless one of the fusions above already includes the norm.
  bool residual = true;
};
// Parses the option that chooses fusions: "1" for all, "0" for none, or a list of qkv, gate_up, rope_kv, moe and
// residual. Errors: kInvalidArgument naming the wrong word.
Result<FusionOptions> parse_fusion(std::string_view text);
std::string to_string(const FusionOptions& options);
// Returns the options without the fusions for which the tier has no kernels.
FusionOptions with_kernels(FusionOptions options, const kernel::KernelTable& kernels);

ir::Graph fuse(const ir::Graph& graph, const FusionOptions& options);

// Adds QUANTIZE nodes. Each node that reads quantized activations gets its input from a QUANTIZE, which is placed right
// after the node that writes these rows. Nodes that read the same rows share one QUANTIZE. A node whose kernel
// quantizes its input itself gets the attribute `quantize` instead. Errors: kUnavailable for a node whose weights need
// different types of quantized input.
Result<ir::Graph> quantize_activations(const ir::Graph& graph);

}  // namespace zinc_rt::lower
