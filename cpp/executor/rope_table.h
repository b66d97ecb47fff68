// RoPE angles of all positions, computed once on the host in double (docs/arithmetic.md, rule 6).
#pragma once

#include <span>

#include "arch/family.h"

namespace zinc_rt {

// For each variant v: out[v * n_positions + p][2i], [2i + 1] = magnitude * cos, sin(p * inverse_frequencies[i]); out
// holds n_variants * n_positions * n_rot floats.
void fill_rope_table(const arch::RopeTable& table, std::uint32_t n_positions, std::span<float> out);

}  // namespace zinc_rt
