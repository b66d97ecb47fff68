#include "tools/hindrances.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "arch/family.h"
#include "base/error.h"
#include "executor/registry.h"
#include "executor/ring/prepare.h"
#include "kernel/kernel_table.h"
#include "model/config.h"
#include "model/config_keys.h"
#include "ring/registry.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt::tools {
namespace {

// Adds the operations of the model's graphs for which the tier has no kernel.
Status find_missing_ops(const Weights& weights, std::string_view wanted, std::vector<std::string>& out) {
  ExecutorOptions options;
  options.max_slots = 1;
  // Without a tier first, so that a tensor is named even if the tier cannot run here.
  if (auto prepared = prepare(weights.path(), options); !prepared) return std::unexpected(std::move(prepared).error());
  ZRT_TRY(const auto choice, pick_tier(wanted.empty() ? "auto" : wanted));
  const std::string& name = choice.entry.tier.name;
  const auto tier = ring::find_tier(name);
  if (!tier) return {};  // a peer, which has no ring
  ring::RingOptions ring_options;
  ring_options.threads = 1;
  ZRT_TRY(const auto ring, (*tier)->make_ring(ring_options));
  Target target;
  target.kernels = &ring->kernels();
  ZRT_TRY(const Prepared prepared, prepare(weights.path(), options, target));
  std::set<std::pair<std::string, std::string>> missing;
  for (const ir::Graph* graph : {&prepared.prefill_low, &prepared.decode_low})
    for (const ir::Node& node : graph->nodes()) {
      if (ir::is_host_only(node.op)) continue;
      const DType key = kernel::kernel_key(*graph, node);
      if (ring->kernels().find(node.op, key) == nullptr)
        missing.emplace(std::string(to_string(node.op)), std::string(to_string(key)));
    }
  for (const auto& [op, key] : missing)
    out.push_back(fmt::format("[lower] tier {} has no kernel for {} of type {}", name, op, key));
  return {};
}

}  // namespace

std::vector<std::string> hindrances(const Weights& weights, std::string_view tier) {
  std::vector<std::string> out;
  const auto add = [&](const auto& result) {
    if (!result) out.push_back(result.error().message);
    return result.has_value();
  };
  bool has_shape = false;
  std::size_t n_rows = SIZE_MAX;
  if (const auto config = read_config(weights.metadata(), weights.infos()); add(config)) {
    const bool is_known = add(arch::find_family(config->architecture));
    has_shape = is_known && add(check_keys(weights.metadata(), *config));
    n_rows = config->vocab_size;
  }
  add(Tokenizer::from_metadata(weights.metadata(), n_rows));
  if (has_shape) add(find_missing_ops(weights, tier, out));
  return out;
}

}  // namespace zinc_rt::tools
