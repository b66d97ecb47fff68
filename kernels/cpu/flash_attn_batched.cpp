// This is the CPU reference kernel of the op FLASH_ATTN_BATCHED. It computes FLASH_ATTN for many query tokens, of one
// slot or of several. Each query attends to its own slot's history up to its own position. A workgroup has a tile of
// tokens, so that a kernel set may read a page once for all tokens of one slot in the tile.
// Shapes: as in FLASH_ATTN.
// Order of sums: as in FLASH_ATTN, including where chunks begin, so a token's bits do not depend on how a prompt was
// split.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 16;

}  // namespace

extern const CpuKernel kCpuKernel_flash_attn;
extern const CpuKernel kCpuKernel_flash_attn_batched;
const CpuKernel kCpuKernel_flash_attn_batched{
    "FLASH_ATTN_BATCHED",
    [](const CpuArgs& args) { run_attend(args, attend_tile_of(args, kTile)); },
    {"dim:m", "dtype:kv_k", "dtype:kv_v", "pitch:kv_k", "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"},
    {{"n", kTile}, {"n_kv_heads"}},
    KeyTypes::kKv,
    [](const std::uint32_t* s) { return kCpuKernel_flash_attn.lds_bytes(s); }};

}  // namespace zinc_rt::cpu
