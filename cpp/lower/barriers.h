// Drops the barriers that order nothing: one stays only where a packet after it touches memory that a packet since the
// last kept barrier wrote, or writes memory that one of them touched. Thread rule: pure function.
#pragma once

#include "ring/packet.h"

namespace zinc_rt::lower {

// Which of a packet's bindings it writes.
struct Access {
  std::uint32_t n_inputs = 0;  // the first n_inputs bindings are read, the rest written
};

// accesses: one a packet. Indexes in layer_end and body_end are kept right.
void elide_barriers(ring::PacketBatch& batch, const std::vector<Access>& accesses);

}  // namespace zinc_rt::lower
