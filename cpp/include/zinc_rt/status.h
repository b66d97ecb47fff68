// Defines errors as values: each public call that can fail returns Result<T> or Status.
// Thread rule: plain values, no shared state.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace zinc_rt {

enum class StatusCode : std::uint8_t {
  kInvalidArgument,  // the caller's request cannot be served as written
  kNotFound,         // a file, tensor, tier or name does not exist
  kExhausted,        // a quota or pool is used up; retry_after_s says when to retry (0: waiting does not help)
  kUnavailable,      // something exists but cannot be used now or on this machine
  kCorrupt,          // an input file or buffer breaks its own format
  kInternal,         // a bug of ZINC_RT or a fault of the device
  kCancelled,        // the caller cancelled the request (Request::cancel)
};

const char* to_string(StatusCode code);

// Tells programs what happened if the code alone is not precise enough.
enum class Reason : std::uint8_t {
  kNone,               // there is no more precise reason than the code
  kContextLength,      // the prompt and one generated token exceed the context that a request may use
  kGrammarTooComplex,  // the output format needs more work or memory than a request may use
  kBadLogits,          // no token can be picked from the logits (such as NaN); the same request would fail again
};

// Returns the name of the reason as Python and the APIs show it. Names do not change between releases. The name of
// kNone is empty.
const char* to_string(Reason reason);

struct Error {
  StatusCode code = StatusCode::kInternal;
  // The message is for people: "[place] what disagrees: 12 wanted, 3 there", followed by how to fix it if that is
  // known. The wording may change, so programs should read the other members.
  std::string message;
  double retry_after_s = 0;
  Reason reason = Reason::kNone;
  std::string field{};  // member of the caller's struct that is wrong, such as "max_tokens"; empty if none
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace zinc_rt
