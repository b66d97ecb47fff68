// Writes parts of answers that the writers of several APIs share. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "zinc_rt/request.h"

namespace zinc_rt::server {

// Returns {"prompt_tokens", "completion_tokens", "total_tokens", ..._details}.
std::string usage_json(const Usage& usage);
std::string timings_json(const Timings& timings);
std::uint32_t n_characters(std::string_view utf8);

}  // namespace zinc_rt::server
