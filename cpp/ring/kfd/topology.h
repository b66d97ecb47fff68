// The GPUs that the kernel's compute driver shows, as files of /sys tell of them.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/zrt_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring::kfd {

struct Node {
  std::string name;
  std::uint32_t gpu_id = 0, target_version = 0, render_minor = 0, n_cus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t cwsr_bytes = 0, ctl_stack_bytes = 0;  // 0: this kernel does not say
};
std::vector<Node> read_topology();
// The target whose code a GPU runs: those of one generation have one set of instructions. Errors: kUnavailable.
Result<kernel::Target> target_of(const Node& node);

}  // namespace zinc_rt::ring::kfd
