// KV_WRITE_BATCHED: stores each token's rows of K and V in its cell of the paged cache, which is cell pos % 16 of page
// page_table[slot][pos / 16]. A page begins `pitch` bytes after the one before it, since a page holds all layers.
// Shapes: k [n, nk], v [n, nv], pos [n], slot [n], page_table [s, m]; kv_k [pages, 16, nk], kv_v [pages, 16, nv] in
//   f32, f16 or q8_0.
// Types: f16 rounds to nearest even. q8_0 takes blocks of 32 with d = f16(amax / 127) and q = round(x / d) held to
//   -127..127, all 0 where d is 0; a NaN or an infinity in the block, or a d beyond f16, makes d NaN.
// Order: none; every cell has one writer.
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/half.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::KvWriteBatched;
constexpr NameList kSymbols{"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"};

ZRT_MULTIVERSION void store_f16(const float* row, std::uint16_t* cell, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) cell[i] = f32_to_f16(row[i]);
}

ZRT_MULTIVERSION void store_q8_0(const float* row, std::byte* cell, std::uint32_t n) {
  for (std::uint32_t b = 0; b < n; b += 32, cell += 34) {
    float amax = 0.0f;
    float finite = 0.0f;  // x * 0 summed: 0, or NaN when some x is not finite
    for (int i = 0; i < 32; ++i) {
      const float a = row[b + i] < 0 ? -row[b + i] : row[b + i];
      amax = a > amax ? a : amax;
      finite = finite + row[b + i] * 0.0f;
    }
    std::uint16_t d = f32_to_f16(amax * (1.0f / 127.0f));
    const bool is_nan = finite != 0.0f || d == 0x7c00u;
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

void run(const CpuArgs& args) {
  const std::uint32_t nk = args.dim(kSymbols["dim:nk"]), nv = args.dim(kSymbols["dim:nv"]),
                      pages_per_slot = args.dim(kSymbols["dim:m"]), t = args.wg[0];
  const auto kv = static_cast<DType>(args.symbols[kSymbols["dtype:kv_k"]]);
  const auto pos = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::pos)[t]);
  const auto* pages = args.buffer<const std::int32_t>(Operand::page_table) +
                      static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::slot)[t]) * pages_per_slot;
  kv_store_row(
      args.buffer<const float>(Operand::k) + std::uint64_t{t} * nk,
      kv_cell(args.buffers[Operand::kv_k], pages, pos, args.symbols[kSymbols["pitch:kv_k"]], row_bytes(kv, nk)), nk,
      kv);
  kv_store_row(
      args.buffer<const float>(Operand::v) + std::uint64_t{t} * nv,
      kv_cell(args.buffers[Operand::kv_v], pages, pos, args.symbols[kSymbols["pitch:kv_v"]], row_bytes(kv, nv)), nv,
      kv);
}

}  // namespace

void kv_store_row(const float* row, void* cell, std::uint32_t n, DType kv) {
  switch (kv) {
    case DType::kF32: __builtin_memcpy(cell, row, std::uint64_t{n} * 4); break;
    case DType::kF16: store_f16(row, static_cast<std::uint16_t*>(cell), n); break;
    default: store_q8_0(row, static_cast<std::byte*>(cell), n); break;
  }
}

extern const CpuKernel kCpuKernel_kv_write_batched;
const CpuKernel kCpuKernel_kv_write_batched{"KV_WRITE_BATCHED", run, kSymbols, {{"n"}, {}}, KeyTypes::kKv};

}  // namespace zinc_rt::cpu
