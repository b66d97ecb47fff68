// Decides for each architecture key of a model file whether this runtime may run the file. Its table lists, for each
// key, the families that compute with it, its other names, and the values that change nothing. docs/models.md shows the
// table to users.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"

namespace zinc_rt {

// All functions take keys without the architecture: ".rope.freq_base" stands for "llama.rope.freq_base",
// "qwen3.rope.freq_base" and so on.

// Returns the name under which the file stores this key: the key itself or one of its other names.
std::string name_in_file(const gguf::Metadata& metadata, std::string_view architecture, std::string_view key);

// Returns the value that this family uses for a key that is absent from the file. Returns nullopt if the general
// default applies.
std::optional<double> family_default(const ModelConfig& config, const gguf::Metadata& metadata, std::string_view key);

// Refuses a file that contains a key which should change the model's results, but which this runtime ignores for its
// family. Otherwise the answers would be silently wrong. The error names the key. Keys that only describe the model, or
// that belong to parts that are not run (vision, audio), are allowed. Errors: kUnavailable; kCorrupt if the file stores
// one key under two names with different values.
Status check_keys(const gguf::Metadata& metadata, const ModelConfig& config);

// Returns whether this tensor belongs to a part other than the language model, such as vision or audio. Such parts are
// not run.
bool is_of_other_part(std::string_view tensor);

}  // namespace zinc_rt
