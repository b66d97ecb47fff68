// The GPUs that kernels are compiled for, by the version of their compute engine: 12.0.1 is gfx1201.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/zrt_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

struct GfxVersion {
  std::uint32_t major = 0, minor = 0, revision = 0;
  friend bool operator==(const GfxVersion&, const GfxVersion&) = default;
};
// Reads a version as /dev/kfd's topology writes it (120001), or as the render node does (a byte per part, from bit 16
// on).
GfxVersion gfx_of_topology(std::uint32_t version);
GfxVersion gfx_of_engine(std::uint32_t version);

// The target whose code a GPU runs. GPUs of one generation share an instruction set. Errors: kUnavailable, with the
// known targets.
Result<kernel::Target> target_of(const GfxVersion& version);

}  // namespace zinc_rt::ring
