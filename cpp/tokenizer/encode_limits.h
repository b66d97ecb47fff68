// EncodeLimits says when an encoding must stop before the end of its text.
// Thread rule: plain values; a stop may be requested from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>

namespace zinc_rt {

struct EncodeLimits {
  std::size_t max_tokens = SIZE_MAX;
  std::stop_token cancel = {};
};

}  // namespace zinc_rt
