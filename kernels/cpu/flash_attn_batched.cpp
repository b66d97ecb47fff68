// FLASH_ATTN_BATCHED: FLASH_ATTN for many query tokens, of one slot or of several: each query sees its own slot's
// history up to its own position. Shapes and order are those of FLASH_ATTN, chunk borders too, so a token's bits do not
// depend on how a prompt was cut.
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {

extern const CpuKernel kCpuKernel_flash_attn;
extern const CpuKernel kCpuKernel_flash_attn_batched;
const CpuKernel kCpuKernel_flash_attn_batched{
    "FLASH_ATTN_BATCHED",
    [](const CpuArgs& args) { kCpuKernel_flash_attn.run(args); },
    {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"},
    {{"n"}, {"n_kv_heads"}},
    KeyTypes::kKv,
    [](const std::uint32_t* s) { return kCpuKernel_flash_attn.lds_bytes(s); }};

}  // namespace zinc_rt::cpu
