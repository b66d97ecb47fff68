// Describes a tier: its name, whether it can run on this machine, and how to create its ring. Each tier's folder
// defines one constant of type Tier in its tier.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ring/diagnostics.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

struct RingOptions {
  std::uint32_t device = 0;  // below n_devices()
  int threads = 0;           // T-CPU: worker threads; 0: as many as the process may use
  std::string cpu_kernels;   // T-CPU: the kernel set; empty or "auto": the fastest that runs here
  // If true, weights are stored in the layout that the kernels read fastest; if false, as in the file.
  bool repack = true;
  bool fast = false;  // allows arithmetic `fast`: any order of sums, 16-bit floats (docs/arithmetic.md)
};

// A tier that computes on the host reports this many devices. They all are the same host; only their numbers differ.
inline constexpr std::uint32_t kHostDevices = 64;

struct Tier {
  std::string name;         // the value of ZINC_RT_TIER that selects it, such as "t_cpu"
  std::string description;  // one line for display
  int priority;             // `auto` picks the available tier with the highest; negative: only if the user names it
  // Returns an empty text if the tier can run here, else the reason and what to do about it.
  std::string (*unavailable_reason)();
  Result<std::unique_ptr<Ring>> (*make_ring)(const RingOptions& options);
  // Returns the number of devices on this machine. Null: one.
  std::uint32_t (*n_devices)() = nullptr;
  // Returns one line for display: what was found on this machine, and what of it is used. Null: nothing to report.
  std::string (*details)() = nullptr;
  // Returns one line for display: what this build contains of the tier, on any machine. Null: nothing to report.
  std::string (*built_with)() = nullptr;
  // Null: the tier has no diagnostics.
  const Diagnostics* diagnostics = nullptr;
  // A step has at most this many query tokens, unless an option sets another number. 0: the executor's default.
  std::uint32_t chunk_cap = 0;
  // The KV cache has this type by default in arithmetic `fast`. Empty: the same type as in `exact`.
  std::string_view fast_kv_dtype = {};
};

// LeftOutTier is a tier whose folder this build left out, with the reason that CMake found.
struct LeftOutTier {
  std::string_view name, why;
};

}  // namespace zinc_rt::ring
