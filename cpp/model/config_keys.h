// The meaning of an architecture's keys for the engine: which families compute with a key, its other names, and the
// values that change nothing. docs/models.md has the table for users.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"

namespace zinc_rt {

// Keys are given without the architecture: ".rope.freq_base".

// The name by which the file has this key: the key itself or one of its other names.
std::string name_in_file(const gguf::Metadata& metadata, std::string_view architecture, std::string_view key);

// The value for models of a family whose file lacks the key, if it differs from the general default.
std::optional<double> family_default(const ModelConfig& config, const gguf::Metadata& metadata, std::string_view key);

// Refuses, by its name, a key that would change what the model computes but that its family does not compute with,
// because the answers would be wrong without a sign. Keys that only describe, or belong to parts that are not run
// (vision, audio), are allowed. Errors: kUnavailable; kCorrupt if a key stands under two names with two values.
Status check_keys(const gguf::Metadata& metadata, const ModelConfig& config);

// Whether a tensor belongs to a part beside the language model (vision, audio). Such parts are not run.
bool is_of_other_part(std::string_view tensor);

}  // namespace zinc_rt
