// The size of a page of the KV cache, the same for every cache type, tier and backend. Shared by host and device
// (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

constexpr uint32_t kPageTokens = 16;  // tokens per page

}  // namespace zinc_rt
