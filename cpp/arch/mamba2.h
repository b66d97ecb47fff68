// Adds a layer of Mamba 2, which several families of hybrids have.
// Thread rule: as Builder.
#pragma once

#include "arch/blocks.h"

namespace zinc_rt::arch {

// Records in `b` that the family cannot run the model, if the config's sizes of Mamba 2 do not fit each other. Returns
// whether they do.
bool check_mamba2(Builder& b);
// Adds a recurrent layer (Mamba 2) that reads x: projections, a short convolution, the recurrence, a norm whose gate
// comes first, and the output projection. Returns [tokens, model_dim].
BufferId mamba2(Builder& b, BufferId x);

}  // namespace zinc_rt::arch
