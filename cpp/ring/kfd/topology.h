// Reads the files of the kernel's compute driver in /sys, which list the GPUs that it has found.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/amd/gpus.h"

namespace zinc_rt::ring::kfd {

struct Node {
  std::string name;
  std::uint32_t gpu_id = 0, render_minor = 0, n_cus = 0;
  GfxVersion gfx;
  std::uint64_t memory_bytes = 0;
  // Sizes of the save area (kfd/abi.h); 0: this kernel does not report them.
  std::uint64_t cwsr_bytes = 0, ctl_stack_bytes = 0;
};
std::vector<Node> read_topology();
// Returns the target (instruction set) whose code a GPU runs (ring/amd/gpus.h). Errors: kUnavailable.
Result<kernel::Target> target_of(const Node& node);

}  // namespace zinc_rt::ring::kfd
