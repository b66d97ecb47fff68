// flash_attn_merge_few. It has a header of its own because attention_args.h reaches every kernel, and this only two files.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// The chunks of a head up to which its records are read where they lie, without shared memory: the first, and one a lane.
constexpr uint32_t kMergeFew = 33;

}  // namespace zinc_rt::cuda
