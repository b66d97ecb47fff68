// Plans attention, and the ops before it that write the KV cache.
#include <algorithm>
#include <bit>

#include "base/kv_type.h"
#include "kernels/common/kv_page.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

namespace symbol = rdna::symbol;

using rdna::kChunk;
constexpr std::uint32_t kColumns = 256;
// kBusy workgroups keep a GPU busy. If tokens times heads are fewer, histories are split into parts. The results of the
// parts take at most kMostPartBytes.
constexpr std::uint32_t kBusy = 512;
constexpr std::uint64_t kMostPartBytes = std::uint64_t{256} << 20;

bool is_integer(std::uint32_t cell) {
  return find_kv_cell(gpu::type_of(cell))->layout == KvLayout::kIntegers;
}

// The number of tokens in a WMMA tile, and the number of tokens in a step from which on tiles are faster.
constexpr std::uint32_t kTileTokens = 16, kTilesFrom = 64;

// Returns whether attention uses tiles. It does in steps of many tokens, which are mostly prompts, over integer KV
// caches.
bool has_tiles(const AmdCall& c, const push::FlashAttn& push) {
  return is_integer(c.symbols<op_symbol::FlashAttn>().dtype_kv_k) && c.rows() >= kTilesFrom &&
         push.head_dim % kTileTokens == 0 && push.v_head_dim % kTileTokens == 0;
}

// Plans attention. `quantized` is the address for its result quantized to `type`, or 0 if no quantized result is
// wanted.
void plan_attention(AmdPlanner& p, const AmdCall& c, std::uint64_t quantized, DType type) {
  const auto s = c.symbols<op_symbol::FlashAttn>();
  const auto o = c.operands<operand::FlashAttn>();
  const auto push = c.constants<push::FlashAttn>();
  const std::uint32_t width = push.n_heads * push.v_head_dim;
  if (has_tiles(c, push)) {
    auto args = p.args(c);
    args.symbols[symbol::AttentionTiles::rows] = c.rows();
    p.launch(push.v_head_dim <= 128 ? "flash_attn_integer_tile" : "flash_attn_integer_wide_tile", kChunk,
             ceil_div(c.rows(), kTileTokens), push.n_heads, 1, args);
    if (quantized == 0) return;
    p.barrier();
    plan_quantized_rows(p, c.rows(), {o.y, quantized, type, width});
    return;
  }
  const std::uint32_t chunks = ceil_div(std::uint64_t{s.m} * kPageTokens, kChunk), workgroups = c.rows() * push.n_heads;
  const std::uint64_t bytes = std::uint64_t{workgroups} * chunks * (push.v_head_dim + 2) * 4;
  // The number of parts is a power of two, so that a step needs no more memory than a step whose number of tokens is
  // the next larger power of two (AmdRing::scratch_bytes).
  const std::uint32_t wanted = kBusy / std::max(std::bit_ceil(c.rows()) * push.n_heads, 1u),
                      parts = bytes > kMostPartBytes ? 1 : std::clamp(wanted, 1u, chunks);
  const std::string kernel = is_integer(s.dtype_kv_k) ? "flash_attn_integer" : "flash_attn";
  auto args = p.args(c);
  using Symbol = symbol::Attention;
  args.symbols[Symbol::parts] = parts;
  args.symbols[Symbol::chunks] = chunks;
  if (parts > 1) args.scratch = p.scratch(bytes);
  p.launch(kernel, kChunk, c.rows(), push.n_heads, parts, args);
  if (parts > 1) {
    args.set_buffers<rdna::binding::AttentionParts>(
        {o.q, o.kv_k, o.kv_v, o.pos, o.slot, o.page_table, o.sinks, o.y, quantized});
    args.symbols[Symbol::quantized_dtype] = static_cast<std::uint32_t>(type);
    p.barrier();
    p.launch("attention_merge", kColumns, c.rows(), ceil_div(width, kColumns), 1, args);
  } else if (quantized != 0) {
    p.barrier();
    plan_quantized_rows(p, c.rows(), {o.y, quantized, type, width});
  }
}

}  // namespace

void plan_flash_attn(AmdPlanner& p, const AmdCall& c) {
  plan_attention(p, c, 0, DType::kF32);
}

std::size_t plan_attention_quantize(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  const auto quantized = gpu::quantized(calls[1]);
  plan_attention(p, calls[0], quantized.y, quantized.type);
  return 2;
}

void plan_rope_kv_write(AmdPlanner& p, const AmdCall& c) {
  const auto s = c.symbols<op_symbol::RopeKvWrite>();
  const auto push = c.constants<push::RmsNormFusedRopeKvWrite>();
  auto args = p.args(c);
  args.set_constants(rdna::RopeKvWriteConstants{push, 1.0f / static_cast<float>(push.head_dim)});
  p.launch(is_integer(s.dtype_kv_k) ? "rope_kv_write_integer" : "rope_kv_write", 32, c.rows(),
           (s.nq + 2 * s.nk) / push.head_dim, 1, args);
}

}  // namespace zinc_rt::ring
