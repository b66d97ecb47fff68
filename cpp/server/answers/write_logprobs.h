// Writes the log-probabilities of tokens in answers. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "server/answers/answer_writer.h"

namespace zinc_rt::server {

// Writes a log-probability. JSON has no infinities, so a token with probability 0 gets -9999.0.
std::string logprob_number(double value);
// Returns [{"token", "logprob", "bytes", "top_logprobs": [{"token", "logprob", "bytes"}]}], with the `n_top` most
// likely tokens at each position.
std::string logprobs_json(std::span<const TokenLogprob> tokens, std::uint32_t n_top, const TokenNames& names);

}  // namespace zinc_rt::server
