// This is the CPU reference kernel of the op KV_WRITE_BATCHED, which stores each token's rows of K and V in its cell of
// the paged KV cache. That is cell pos % 16 of page page_table[slot][pos / 16]. Pages are `pitch` bytes apart, because
// a page holds all layers.
// Shapes: k [n, nk], v [n, nv], pos [n], slot [n], page_table [s, m]; kv_k [pages, 16, nk], kv_v [pages, 16, nv] in
// cells of one KV cache type. A token has nk / head_dim heads of keys and equally many of values.
// Types: f16 rounds to nearest even. q8_0 has blocks of 32 with d = f16(amax / 127) and q = round(x / d) clamped to
//   -127..127. All q are 0 if d is 0. d is NaN if the block has a NaN or an infinity, or if d exceeds f16.
//   The cells of r8, r4 and i16 are interleaved by page; see kernels/common/kv_rotate.h and kv_integer.h, and
//   quant/rotated_kv.h and integer_kv.h.
// Order of sums: there are none; every cell is written once.
#include "base/kv_type.h"
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/half.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/integer_kv.h"
#include "kernels/cpu/quant/largest.h"
#include "kernels/cpu/quant/rotated_kv.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::KvWriteBatched;
constexpr NameList kSymbols{"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "dtype:kv_v", "pitch:kv_k", "pitch:kv_v"};

ZRT_MULTIVERSION void store_f16(const float* row, std::uint16_t* cell, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) cell[i] = f32_to_f16(row[i]);
}

ZRT_MULTIVERSION void store_q8_0(const float* row, std::byte* cell, std::uint32_t n) {
  for (std::uint32_t b = 0; b < n; b += 32, cell += 34) {
    const Largest largest = largest_of(row + b, 32);
    std::uint16_t d = f32_to_f16(largest.magnitude * (1.0f / 127.0f));
    const bool is_nan = !largest.is_finite || d == 0x7c00u;
    if (is_nan) d = 0x7e00u;
    const bool usable = !is_nan && d != 0;
    const float inverse = usable ? exact::rcp(f16_to_f32(d)) : 0.0f;
    __builtin_memcpy(cell, &d, 2);
    for (int i = 0; i < 32; ++i) {
      const float q = usable ? exact::round_int(row[b + i] * inverse) : 0.0f;
      cell[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q));
    }
  }
}

void store_row(const float* row, const KvSide& side, std::byte* page, std::uint32_t token) {
  const std::uint32_t n = side.n_heads * side.head_dim;
  std::byte* cell = page + token * row_bytes(side.type, n);
  switch (side.type) {
    case DType::kF32: __builtin_memcpy(cell, row, std::uint64_t{n} * 4); break;
    case DType::kF16: store_f16(row, reinterpret_cast<std::uint16_t*>(cell), n); break;
    default: store_q8_0(row, cell, n); break;
  }
}

void run(const CpuArgs& args) {
  const std::uint32_t nk = args.dim(kSymbols["dim:nk"]), nv = args.dim(kSymbols["dim:nv"]),
                      pages_per_slot = args.dim(kSymbols["dim:m"]), t = args.wg[0];
  const std::uint32_t head_dim = args.constants<push::KvWriteBatched>().head_dim, n_heads = nk / head_dim;
  const auto pos = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::pos)[t]);
  const auto* pages = args.buffer<const std::int32_t>(Operand::page_table) +
                      static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::slot)[t]) * pages_per_slot;
  kv_store(args.buffer<const float>(Operand::k) + std::uint64_t{t} * nk,
           {args.buffers[Operand::kv_k], static_cast<DType>(args.symbols[kSymbols["dtype:kv_k"]]),
            args.symbols[kSymbols["pitch:kv_k"]], n_heads, head_dim, true},
           pages, pos);
  kv_store(args.buffer<const float>(Operand::v) + std::uint64_t{t} * nv,
           {args.buffers[Operand::kv_v], static_cast<DType>(args.symbols[kSymbols["dtype:kv_v"]]),
            args.symbols[kSymbols["pitch:kv_v"]], n_heads, nv / n_heads, false},
           pages, pos);
}

}  // namespace

void kv_store(const float* row, const KvSide& side, const std::int32_t* pages, std::uint32_t pos) {
  auto* page = static_cast<std::byte*>(side.cache) + static_cast<std::uint64_t>(pages[pos / 16]) * side.pitch;
  switch (find_kv_cell(side.type)->layout) {
    case KvLayout::kTokens: return store_row(row, side, page, pos % 16);
    case KvLayout::kRotated:
      return (side.is_key ? write_rotated_keys : write_rotated_values)(row, page, pos % 16,
                                                                       {side.type, side.n_heads, side.head_dim});
    case KvLayout::kIntegers:
      return (side.is_key ? write_integer_keys : write_integer_values)(row, page, pos % 16,
                                                                       {side.n_heads, side.head_dim});
  }
}

extern const CpuKernel kCpuKernel_kv_write_batched;
const CpuKernel kCpuKernel_kv_write_batched{"KV_WRITE_BATCHED", run, kSymbols, {{"n"}, {}}, KeyTypes::kKv};

}  // namespace zinc_rt::cpu
