// This is the CPU reference kernel of the op QUANTIZE, which converts rows of floats to blocks of integers with one
// scale per block (kernels/common/act_q8.h). The types are int8 in blocks of 32 (q8a32) or 256 (q8a256), with most =
// 127, and codes of two digits in blocks of 256 (q16a256), with most = 32,639. In each block:
//   amax = max |x|
//   d = amax / most
//   q = round(x * (most / amax)), ties to even; both quotients by exact::div
//   sums of q are exact integers
// A block with amax below 2^-100 is all zero. A NaN or an infinity in the block makes d NaN, so that it shows in the
// logits.
// Order of sums: there are none; the maximum is the same in any order.
#include <cmath>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/act_q8.h"
#include "kernels/common/digits.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/largest.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Quantize;
constexpr NameList kSymbols{"dim:k", "dtype:y"};

// Calls put(i, shifted) for each of n values, where the low bits of `shifted` are the value's code. Returns d.
template <class Put>
ZRT_INLINE float quantize_by(const float* x, int n, float most, const Put& put) {
  const auto [amax, is_finite] = largest_of(x, static_cast<std::uint32_t>(n));
  const bool usable = amax >= 0x1p-100f && amax <= 0x1p120f && is_finite;
  const float inverse = usable ? exact::div(most, amax) : 0.0f;
  for (int i = 0; i < n; ++i)
    put(i, __builtin_bit_cast(std::int32_t, (usable ? x[i] * inverse : 0.0f) + exact::kRound));
  if (!is_finite || amax > 0x1p120f) return NAN;
  return usable ? exact::div(amax, most) : 0.0f;
}

ZRT_MULTIVERSION float quantize_any_block(const float* x, std::int8_t* q, int n) {
  return quantize_by(x, n, 127.0f, [&](int i, std::int32_t shifted) __attribute__((always_inline)) {
    q[i] = static_cast<std::int8_t>(shifted);
  });
}

ZRT_MULTIVERSION void quantize_16(const float* x, ActBlockQ16A256* y, std::uint32_t n_blocks) {
  for (std::uint32_t b = 0; b < n_blocks; ++b, x += 256)
    y[b].d = quantize_by(x, 256, digits::kMost, [&](int i, std::int32_t shifted) __attribute__((always_inline)) {
      const auto code = static_cast<std::int16_t>(shifted);
      y[b].high[i] = static_cast<std::int8_t>(digits::high_digit(code));
      y[b].low[i] = static_cast<std::int8_t>(code);
    });
}

void run(const CpuArgs& args) {
  const std::uint32_t k = args.dim(kSymbols["dim:k"]);
  const auto act = static_cast<DType>(args.symbols[kSymbols["dtype:y"]]);
  const std::uint64_t t = args.wg[0];
  quantize_row(args.buffer<const float>(Operand::x) + t * k, args.buffer<std::byte>(Operand::y) + t * row_bytes(act, k),
               k, act, args.set);
}

}  // namespace

float quantize_block(const float* x, std::int8_t* q, int n) {
  return quantize_any_block(x, q, n);
}

void quantize_row(const float* x, void* y, std::uint32_t k, DType act, const KernelSet* set) {
  if (set != nullptr && set->rows != nullptr) return set->rows->quantize(x, y, k, act);
  if (act == DType::kQ8A32) {
    auto* blocks = static_cast<ActBlockQ8A32*>(y);
    for (std::uint32_t b = 0; b < k / 32; ++b) {
      blocks[b].d = quantize_block(x + b * 32, blocks[b].qs, 32);
      std::int32_t sum = 0;
      for (const auto q : blocks[b].qs) sum += q;
      blocks[b].sum = sum;
    }
    return;
  }
  if (act == DType::kQ16A256) return quantize_16(x, static_cast<ActBlockQ16A256*>(y), k / 256);
  auto* blocks = static_cast<ActBlockQ8A256*>(y);
  for (std::uint32_t b = 0; b < k / 256; ++b) {
    blocks[b].d = quantize_block(x + b * 256, blocks[b].qs, 256);
    for (int s = 0; s < 16; ++s) {
      std::int32_t sum = 0;
      for (int i = 0; i < 16; ++i) sum += blocks[b].qs[s * 16 + i];
      blocks[b].sums[s] = static_cast<std::int16_t>(sum);
    }
  }
}

extern const CpuKernel kCpuKernel_quantize;
const CpuKernel kCpuKernel_quantize{"QUANTIZE", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
