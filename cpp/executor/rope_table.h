// Computes the RoPE angles of all positions once, when a model is opened. It computes in float64 on the host, so that
// all tiers use the same bits (docs/arithmetic.md, rule 6).
// Thread rule: a pure function.
#pragma once

#include <span>

#include "arch/family.h"

namespace zinc_rt {

// Fills `out`, which holds n_variants * n_positions * n_rot floats. Row v * n_positions + p belongs to position p of
// variant v. Its elements 2i and 2i + 1 are the cosine and sine of p * inverse_frequencies[i], each multiplied by the
// magnitude.
void fill_rope_table(const arch::RopeTable& table, std::uint32_t n_positions, std::span<float> out);

}  // namespace zinc_rt
