// Compares two runs of one prompt, layer by layer: two tiers, one tier with two sets of options, or a tier and arrays
// that numpy stored. `zinc-rt validate` and zinc_rt.validate in Python call this.
// Thread rule: free functions and plain values; validate() opens engines of its own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/engine.h"
#include "zinc_rt/status.h"
#include "zinc_rt/stop.h"

namespace zinc_rt {

// ValidateSide is one of the two sides of a comparison: a tier, optionally with engine options that replace those of
// `options`. Its text is like "t_cpu", "t_cpu+activations=f32+kv_dtype=f32" or "t_cpu+fusion=qkv/gate_up+chunk_cap=7".
// parse_validate_side() returns kInvalidArgument for an unknown option, with the list of known ones.
struct ValidateSide {
  std::string name;  // the text from which this side was parsed
  EngineOptions options;
};
Result<ValidateSide> parse_validate_side(std::string_view text, EngineOptions options = {});
std::string validate_side_options();  // names of the options that a side may set, joined by ", "

// Parses "all", "none" or a list such as "embed,0,3,5-7". Returns the layers to compare, in ascending order; -1 stands
// for the embeddings. Errors: kInvalidArgument for any other text, and for a layer that a model of n_layers does not
// have.
Result<std::vector<int>> parse_layers(std::string_view text, std::uint32_t n_layers);

struct ValidateOptions {
  std::string prompt;                   // tokenized with the special tokens that the model adds
  std::vector<std::int32_t> token_ids;  // used instead of `prompt` if not empty
  std::vector<std::string> tiers;       // two sides, or one if `against` is given
  std::string layers = "all";
  // Path of an uncompressed .npz file (numpy.savez), with whose arrays the tier is compared; empty if two tiers are
  // compared. Types: float16/32/64 and int32/64. `zinc-rt validate --help` lists the names and shapes of the arrays.
  std::string against;
  double tolerance = 0;  // largest |a - b| that counts as equal; 0: only equal bits count as equal
  StopAsked is_stopped;  // called before each layer
};

// Difference is the result of comparing two arrays value by value.
struct Difference {
  int layer = 0;  // -1 for the embeddings, n_layers for the logits
  std::string name;
  bool equal = true;                            // whether all values are equal within the tolerance
  std::uint64_t n_values = 0, n_different = 0;  // n_different counts values whose bits differ
  double max_abs = 0;                           // infinity if only one of two values is finite
  double mean_abs = 0;                          // mean over all values
  // Counts the values that differ, by the power of ten of |a - b|, rounded down. Key -12 also counts all smaller
  // differences, and key 12 all larger differences.
  std::map<int, std::uint64_t> histogram;
};
// Compares two arrays. REQUIRES: a and b have the same size.
Difference compare(std::span<const float> a, std::span<const float> b, double tolerance);

struct ValidateReport {
  std::array<std::string, 2> sides;
  std::vector<std::int32_t> token_ids;
  double tolerance = 0;
  std::vector<Difference> layers;
  Difference logits;
  std::uint64_t n_rows = 0;      // number of rows of logits
  std::uint64_t n_same_top = 0;  // rows for which both sides have the same most likely token
  bool equal = true;             // whether all layers and the logits are equal

  std::string to_text() const;  // formats the report as a table
  std::string to_json() const;
};

// Runs both sides and compares them. Errors: those of opening and running the engines; kInvalidArgument, kNotFound or
// kCorrupt for the arrays.
Result<ValidateReport> validate(const std::string& model, const ValidateOptions& options);

}  // namespace zinc_rt
