// A model family: from a config to the IR. One file a family; CMake writes the list of them from the file names.
// Thread rule: the functions are pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "ir/graph.h"
#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::arch {

// What an engine adds to a model's shape.
struct GraphOptions {
  ir::Stage stage = ir::Stage::kPrefill;
  std::uint32_t max_slots = 1;
  std::uint32_t max_context = 0;     // tokens a slot can hold, a multiple of the page
  std::uint32_t n_pages = 0;         // of the KV pool
  std::uint32_t history_tokens = 0;  // extent of request.history
  std::uint32_t ring_entries = 0;    // extent of host_ring.tokens
  DType kv_dtype = DType::kF16;
};

// Pairs (cos, sin) for each position, made by the executor in double: const.NAME, [max_context, n_rot].
struct RopeTable {
  std::string name;
  std::uint32_t n_rot = 0;
  std::vector<double> inverse_frequencies;  // n_rot / 2
  double magnitude = 1;
};

struct Family {
  std::string_view name;                            // for people
  std::span<const std::string_view> architectures;  // general.architecture
  // The graph of a stage. Errors name the tensor or key.
  Result<ir::Graph> (*build)(const ModelConfig& config, const Weights& weights, const GraphOptions& options);
  std::vector<RopeTable> (*rope_tables)(const ModelConfig& config, const Weights& weights);
};

std::span<const Family* const> families();
// kUnavailable with the list of supported ones.
Result<const Family*> find_family(std::string_view architecture);

}  // namespace zinc_rt::arch
