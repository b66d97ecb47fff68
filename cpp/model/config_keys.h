// What the engine knows about each metadata key of an architecture: which families compute with the key, its other
// names, and the values that change nothing. docs/models.md has the table for users.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"

namespace zinc_rt {

// Keys are given without the architecture: ".rope.freq_base".

// Returns the name under which the file stores this key: the key itself or one of its other names.
std::string name_in_file(const gguf::Metadata& metadata, std::string_view architecture, std::string_view key);

// Returns the value of a key that the file lacks, if the family's default differs from the general default.
std::optional<double> family_default(const ModelConfig& config, const gguf::Metadata& metadata, std::string_view key);

// Refuses a file with a key that should change what the model computes but that this runtime ignores for its family,
// because the answers would be silently wrong. The error names the key. Keys that only describe the model, or belong to
// parts that are not run (vision, audio), are allowed. Errors: kUnavailable; kCorrupt if the file stores a key under
// two names with different values.
Status check_keys(const gguf::Metadata& metadata, const ModelConfig& config);

// Returns whether a tensor belongs to a part other than the language model (vision, audio). Such parts are not run.
bool is_of_other_part(std::string_view tensor);

}  // namespace zinc_rt
