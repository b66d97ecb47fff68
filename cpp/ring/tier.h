// The description of a tier: its name, whether it can run here, and how to create its ring. A tier's folder defines one
// constant of this type in its tier.cpp.
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
  int threads = 0;           // T-CPU: worker threads, 0 = what the process may use
  std::string cpu_kernels;   // T-CPU: the kernel set, empty or "auto" = the fastest that runs here
  bool repack = true;        // layout of weights: true: the one that the kernels read fastest; false: as in the file
  bool fast = false;         // arithmetic `fast` is allowed: any order of sums, 16-bit floats (docs/arithmetic.md)
};

// The number of devices of a tier that computes on the host. These devices share the host; only their numbers differ.
inline constexpr std::uint32_t kHostDevices = 64;

struct Tier {
  std::string name;         // as in ZINC_RT_TIER: "t_cpu"
  std::string description;  // one line for people
  int priority;             // `auto` picks the highest one that is available; negative: used only when forced
  // Empty if the tier can run here, else the reason and what to do about it.
  std::string (*unavailable_reason)();
  Result<std::unique_ptr<Ring>> (*make_ring)(const RingOptions& options);
  // The number of devices here. Null: one.
  std::uint32_t (*n_devices)() = nullptr;
  // One line for people: what was found on this machine, and what of it is used. Null: nothing to report.
  std::string (*details)() = nullptr;
  // One line for people: what this build contains of the tier, on any machine. Null: nothing to report.
  std::string (*built_with)() = nullptr;
  // Null: the tier has no diagnostics.
  const Diagnostics* diagnostics = nullptr;
  // The most query tokens of a step, unless an option sets it; 0: the executor's default.
  std::uint32_t chunk_cap = 0;
  // The default type of the KV cache in arithmetic `fast`. Empty: the same as in `exact`.
  std::string_view fast_kv_dtype = {};
};

// A tier whose folder this build left out, with the reason that CMake found.
struct LeftOutTier {
  std::string_view name, why;
};

}  // namespace zinc_rt::ring
