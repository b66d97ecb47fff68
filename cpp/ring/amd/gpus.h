// Knows the GPUs for which kernels are compiled, by the version of their compute engine: 12.0.1 is gfx1201.
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
// Return a version from the number in /dev/kfd's topology (120001), and from the number that the render node reports
// (one byte per part, from bit 16 on).
GfxVersion gfx_of_topology(std::uint32_t version);
GfxVersion gfx_of_engine(std::uint32_t version);

// Returns the target (instruction set) whose code a GPU runs. GPUs of a generation have the same target. Errors:
// kUnavailable, with the known targets.
Result<kernel::Target> target_of(const GfxVersion& version);

}  // namespace zinc_rt::ring
