// Errors as values. Every call of the public interface that can fail returns Result<T> or Status.
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

// message has the form "[place] what disagrees: 12 wanted, 3 there" and ends with the fix where one is known.
struct Error {
  StatusCode code = StatusCode::kInternal;
  std::string message;
  double retry_after_s = 0;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace zinc_rt
