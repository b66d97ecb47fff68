// The limit of flash_attn_merge_few, the kernel that merges the attention chunks of short histories. It is not in
// attention_args.h because every kernel includes that header, so a change of this number would recompile all of them.
// Only the planner and that kernel need it.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// flash_attn_merge_few merges a head of at most this many chunks. The first chunk's record is read by all lanes of the
// warp, and each of the 32 lanes holds the factors of one further chunk, so no shared memory is needed.
constexpr uint32_t kMergeFew = 33;

}  // namespace zinc_rt::cuda
