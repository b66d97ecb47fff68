// Computes SipHash-2-4 (Aumasson and Bernstein), a keyed hash. Nobody who lacks the key can construct collisions, so a
// client cannot slow the prefix cache down.
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace zinc_rt::mem {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

std::uint64_t siphash(SipKey key, std::span<const std::byte> data);

}  // namespace zinc_rt::mem
