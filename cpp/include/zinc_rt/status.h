// Errors as values. Each public call that can fail returns Result<T> or Status.
// Thread rule: plain values, no shared state.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace zinc_rt {

enum class StatusCode : std::uint8_t {
  kInvalidArgument,  // the caller's request cannot be served as written
  kNotFound,         // a file, tensor, tier or name that does not exist
  kExhausted,        // a quota or a pool is used up; retry_after_s says when to try again; 0: that alone does not help
  kUnavailable,      // the thing exists but cannot be used now or on this machine
  kCorrupt,          // an input file or buffer breaks its own format
  kInternal,         // a bug of ours or a fault of the device
  kCancelled,        // the caller took it back (Request::cancel)
};

const char* to_string(StatusCode code);

// Tells programs what happened where the code alone does not say enough.
enum class Reason : std::uint8_t {
  kNone,               // the code says all
  kContextLength,      // the prompt, with one token to generate, is longer than a request's context may be
  kGrammarTooComplex,  // what the answer must look like takes more work or memory than a request may use
  kBadLogits,          // the model gave values of which no token can be picked; the same request would fail again
};

// The name of the reason, as Python and the APIs show it. It stays the same from release to release. kNone: empty.
const char* to_string(Reason reason);

struct Error {
  StatusCode code = StatusCode::kInternal;
  // For people: "[place] what disagrees: 12 wanted, 3 there", and at its end how to mend it if that is known. The words
  // may change, so programs read the other members.
  std::string message;
  double retry_after_s = 0;
  Reason reason = Reason::kNone;
  std::string field{};  // which member of the caller's struct is at fault, such as "max_tokens"; empty: none
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace zinc_rt
