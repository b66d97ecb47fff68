// A model family builds the IR graph for a ModelConfig. Each family is one file, which defines a Family. CMake collects
// the families from the file names.
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

// Holds the sizes that the engine's options, not the model file, decide. A graph's buffers have these extents.
struct GraphOptions {
  ir::Stage stage = ir::Stage::kPrefill;
  std::uint32_t max_slots = 1;
  std::uint32_t state_entries = 1;   // number of recurrent states: one per slot, then the checkpoints
  std::uint32_t state_guesses = 1;   // most guessed tokens of a slot whose inputs to recurrent layers are saved
  std::uint32_t max_context = 0;     // most tokens of a slot; a multiple of the page size
  std::uint32_t n_pages = 0;         // number of pages in the KV pool
  std::uint32_t history_tokens = 0;  // number of entries of the buffer request.history
  std::uint32_t bias_entries = 0;    // number of entries of the buffer request.bias
  std::uint32_t mask_words = 0;      // number of 32-bit words of the buffer request.mask
  std::uint32_t ring_entries = 0;    // number of entries of the buffer host_ring.tokens
  KvType kv = *find_kv_type("f16");
  Pooling pooling = Pooling::kNone;  // kNone: the graph picks tokens; else it computes embeddings
  // Whether the graph stores each picked token in the slot table, from which the next step can read it (StepInput).
  bool keeps_tokens = false;
  bool has_logprobs = false;  // whether a graph that picks tokens ends with LOGPROBS
  // Whether a graph that picks tokens stores the features of all tokens in out.features, which a draft block reads
  // (Family::build_draft): the inputs of feature_layers side by side, [tokens, n * model_dim]; or, if there are no such
  // layers, the residual stream behind the final norm, [tokens, model_dim].
  bool gives_features = false;
  // In ascending order. The model's n_layers stands for the output of its last layer.
  std::vector<std::uint32_t> feature_layers;
  // For the graph of a draft block: the model whose KV cache it may read, in the pages that its page table names. Null: it
  // has a KV cache of its own.
  const ModelConfig* model = nullptr;
};

// Holds the angles from which one RoPE table is computed. Position p turns pair i by p * inverse_frequencies[i]. cos
// and sin are multiplied by `magnitude`, and by 1 + temperature_scale * ln(1 + floor(p / temperature_length)).
struct RopeAngles {
  std::vector<double> inverse_frequencies;  // n_rot / 2 numbers
  double magnitude = 1;
  double temperature_scale = 0;
  std::uint32_t temperature_length = 0;  // not read if temperature_scale is 0
};
// Describes a table of (cos, sin) pairs per position, which the executor computes in double. Its buffer is const.NAME
// with shape [n_variants * max_context, n_rot], if the graph reads such a table. The length of the text decides which
// variant a token reads (Family::rope_variant).
struct RopeTable {
  std::string name;
  std::vector<RopeAngles> variants;
  std::uint32_t first_position = 0;  // row p of a variant has the angles of position p + first_position
};

struct Family {
  std::string_view name;                            // name that messages and lists show
  std::span<const std::string_view> architectures;  // the values of general.architecture that this family builds
  // Builds the graph of a stage (prefill or decode). Errors name the tensor or key. The function pointer is null if the
  // family's files are nothing but draft blocks.
  Result<ir::Graph> (*build)(const ModelConfig& config, const Weights& weights, const GraphOptions& options);
  std::vector<RopeTable> (*rope_tables)(const ModelConfig& config, const Weights& weights);
  // Returns which variant of the RoPE table the last token of a text of n_tokens tokens reads. The function pointer is
  // null if the family has only one variant. A token's keys must all be rotated by the token's own variant. So a text
  // that grows past a change of variant is computed again from its start, and logits depend only on the text.
  std::uint32_t (*rope_variant)(const ModelConfig& config, const Weights& weights, std::uint64_t n_tokens) = nullptr;
  // Builds the graph of the file's draft block, which guesses the token after the next one: the first block for
  // multi-token prediction, or all of a file of its own. Its input at a position is the next position's token and, in
  // request.features, this position's features. Those are the model's, or what the block itself stored in out.features.
  // If request.features is wider than out.features, the model's features come first in a row and the block's own last,
  // and either the ones or the others are 0. The function pointer is null if the family has no such blocks, or they are
  // not run.
  Result<ir::Graph> (*build_draft)(const ModelConfig& config, const Weights& weights,
                                   const GraphOptions& options) = nullptr;
  // What a draft block's file borrows from the file of its model, if it lacks it.
  std::span<const Loan> loans{};
};

std::span<const Family* const> families();
// Returns the family that builds this architecture. Errors: kUnavailable, with the list of supported architectures.
Result<const Family*> find_family(std::string_view architecture);

}  // namespace zinc_rt::arch
