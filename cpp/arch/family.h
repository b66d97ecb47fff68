// A model family builds the IR graph of a config. Each family is one file; CMake collects the families from the file
// names.
// Thread rule: the functions are pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/kv_type.h"
#include "base/pooling.h"
#include "ir/graph.h"
#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::arch {

// The sizes that an engine adds to a model's shape.
struct GraphOptions {
  ir::Stage stage = ir::Stage::kPrefill;
  std::uint32_t max_slots = 1;
  std::uint32_t state_entries = 1;   // entries of recurrent state: one per slot, then the checkpoints
  std::uint32_t max_context = 0;     // tokens a slot can hold, a multiple of the page
  std::uint32_t n_pages = 0;         // of the KV pool
  std::uint32_t history_tokens = 0;  // extent of request.history
  std::uint32_t bias_entries = 0;    // extent of request.bias
  std::uint32_t mask_words = 0;      // extent of request.mask
  std::uint32_t ring_entries = 0;    // extent of host_ring.tokens
  KvType kv = *find_kv_type("f16");
  Pooling pooling = Pooling::kNone;  // kNone: the graph outputs tokens, else embeddings
};

// The angles of one table: position p turns pair i by p * inverse_frequencies[i]. cos and sin are multiplied by
// magnitude.
struct RopeAngles {
  std::vector<double> inverse_frequencies;  // n_rot / 2
  double magnitude = 1;
};
// Pairs (cos, sin) per position, which the executor computes in double: const.NAME, [n_variants * max_context, n_rot].
// The length of the text decides which variant is read (Family::rope_variant).
struct RopeTable {
  std::string name;
  std::vector<RopeAngles> variants;
};

struct Family {
  std::string_view name;                            // shown to users
  std::span<const std::string_view> architectures;  // general.architecture
  // Builds the graph of a stage. Errors name the tensor or key.
  Result<ir::Graph> (*build)(const ModelConfig& config, const Weights& weights, const GraphOptions& options);
  std::vector<RopeTable> (*rope_tables)(const ModelConfig& config, const Weights& weights);
  // Returns the index of the variant for the last token of a text of n_tokens tokens. The pointer is null if there is
  // only one variant. All keys that a token attends to must have been rotated by the token's variant, so a text that
  // grows past a change of variant is computed again from its start. Logits therefore depend only on the text.
  std::uint32_t (*rope_variant)(const ModelConfig& config, const Weights& weights, std::uint64_t n_tokens) = nullptr;
};

std::span<const Family* const> families();
// Errors: kUnavailable, with the list of supported architectures.
Result<const Family*> find_family(std::string_view architecture);

}  // namespace zinc_rt::arch
