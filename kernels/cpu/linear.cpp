// This is the CPU reference kernel of the op LINEAR. It computes y[t][m] = dot(w[m], x[t]) + bias[m].
// Shapes: x [n, k], w [m, k], bias [m] or absent, y [n, m].
// Types: if x is quantized (by QUANTIZE), the weight format's integer dot is used (rules 3 and 4). If x is f32, the
//   float dot (rule 4) of x with the weight row is used, after the row is converted to float. That is the case for
//   float weights, and in the debugging mode activations = f32.
// Order of sums: that of the dot, which quant/<format>.cpp defines. The bias is added last. Rows and tokens are
//   independent of each other.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/act_q8.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/panels.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {

namespace {

using Operand = operand::Linear;
constexpr NameList kSymbols{"dim:n", "dim:k", "dim:m", "dtype:w", "dtype:x"};

bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

void linear_reference(const LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  const QuantFormat& format = *quant_format(args.w_dtype);
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const auto* x = static_cast<const std::byte*>(args.x);
  const auto* w = static_cast<const std::byte*>(args.w);
  const std::uint64_t w_row = row_bytes(args.w_dtype, args.k);
  const bool integer = args.x_dtype != DType::kF32;
  for (std::uint32_t m = begin; m < end; ++m) {
    const void* row = w + m * w_row;
    const auto dot = integer ? format.dot : f32.dot;
    if (!integer && args.w_dtype != DType::kF32) {
      if (args.packed)
        dequantize_packed_row(args.w_dtype, args.rows, args.k, w, m, args.scratch);
      else
        format.dequantize_row(row, args.scratch, args.k);
      row = args.scratch;
    }
    for (std::uint32_t t = 0; t < args.n; ++t) {
      const float v = dot(row, x + t * args.x_pitch, args.k);
      args.y[t * args.y_pitch + m] = args.bias != nullptr ? v + args.bias[m] : v;
    }
  }
}

}  // namespace

void linear_rows(const LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.set != nullptr && args.set->rows != nullptr && is_float(args.w_dtype) && is_float(args.x_dtype))
    return args.set->rows->float_linear(args, begin, end);
  const auto fast = [&args](std::uint32_t from, std::uint32_t to, bool packed) {
    if (args.set == nullptr || args.set->linear_rows == nullptr) return false;
    LinearArgs part = args;
    part.packed = packed;
    return args.set->linear_rows(part, from, to);
  };
  // A packed matrix ends with the rows that are too few for a panel. These rows are stored in the layout of the file,
  // so they are computed separately.
  const bool packed = args.packed && has_panels(args.w_dtype);
  const std::uint32_t in_panels = packed ? std::clamp(rows_in_panels(args.rows), begin, end) : begin;
  if (begin < in_panels && !fast(begin, in_panels, true)) linear_reference(args, begin, in_panels);
  if (in_panels < end && !fast(in_panels, end, false)) linear_reference(args, in_panels, end);
}

namespace {

std::uint64_t align64(std::uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

bool rounds_x(const KernelSet* set, DType w, DType x, std::uint32_t n) {
  return set != nullptr && set->rows != nullptr && set->rows->rounds_x != nullptr && set->rows->rounds_x(w, x, n);
}

// Form is a form in which the normalized row h is stored for the weight formats that read it: its type, and whether its
// values are rounded to bf16.
struct Form {
  DType type;
  bool is_rounded;
  bool operator==(const Form&) const = default;
  DType x_dtype() const { return is_rounded ? DType::kBF16 : type; }
};
Form form_of(const CpuArgs& args, const NormArgs& norm, const NormLinearPart& part) {
  const DType type = norm.quantize ? act_dtype(part.w_dtype) : DType::kF32;
  return {type, rounds_x(args.set, part.w_dtype, type, norm.n)};
}

// Lists all forms of h. A token's memory has room for all of them, one after another in this order.
constexpr Form kForms[] = {{DType::kF32, false},     {DType::kQ8A32, false}, {DType::kQ8A256, false},
                           {DType::kQ16A256, false}, {DType::kF32, true},    {DType::kQ8A32, true},
                           {DType::kQ8A256, true}};
std::uint64_t bytes_of(const Form& form, std::uint32_t d) {
  return form.is_rounded ? bf16_row_bytes(d) : align64(row_bytes(form.type, d));
}
std::uint64_t place_of(const Form& form, std::uint32_t d) {
  std::uint64_t at = 0;
  for (const Form* before = kForms; *before != form; ++before) at += bytes_of(*before, d);
  return at;
}

}  // namespace

std::uint64_t norm_linear_lds(std::uint32_t d) {
  return std::uint64_t{d} * 4;
}

std::uint64_t norm_linear_shared(std::uint32_t d) {
  std::uint64_t bytes = 0;
  for (const Form& form : kForms) bytes += bytes_of(form, d);
  return bytes | 64;  // an odd number of cache lines, which spreads the rows of tokens over the sets of a cache
}

void norm_linear_prepare(const CpuArgs& args, const NormArgs& norm, std::span<const NormLinearPart> parts) {
  const std::uint64_t t = args.wg[0];
  std::byte* token = args.shared + t * norm_linear_shared(norm.d);
  auto* h = reinterpret_cast<float*>(token);
  rms_norm_row(norm.x + t * norm.d, norm.w, h, norm.d, norm.d, norm.eps, args.set);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Form form = form_of(args, norm, parts[i]);
    const auto before = [&](auto&& is_it) {
      return std::ranges::any_of(parts.first(i), [&](const auto& part) { return is_it(form_of(args, norm, part)); });
    };
    std::byte* x = token + place_of({form.type, false}, norm.d);
    if (form.type != DType::kF32 && !before([&](const Form& other) { return other.type == form.type; }))
      quantize_row(h, x, norm.d, form.type, args.set);
    if (form.is_rounded && !before([&](const Form& other) { return other == form; }))
      args.set->rows->round_x(x, form.type, token + place_of(form, norm.d), norm.d);
  }
}

void norm_linear(const CpuArgs& args, const NormArgs& norm, std::span<const NormLinearPart> parts) {
  for (const NormLinearPart& part : parts) {
    if (part.begin >= part.end) continue;
    const Form form = form_of(args, norm, part);
    linear_rows(
        {part.w, part.w_dtype, part.packed, part.rows, part.bias, args.shared + place_of(form, norm.d), form.x_dtype(),
         norm_linear_shared(norm.d), norm.d, norm.n, part.y, part.rows, reinterpret_cast<float*>(args.lds), args.set},
        part.begin, part.end);
  }
}

namespace {

constexpr std::uint32_t kTile = 64;

std::uint32_t n_prepare(const CpuArgs& args) {
  const auto w = static_cast<DType>(args.symbols[kSymbols["dtype:w"]]),
             x = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  const std::uint32_t n = args.dim(kSymbols["dim:n"]);
  return rounds_x(args.set, w, x, n) ? n : 0;
}

std::uint64_t shared_bytes(const CpuArgs& args) {
  return n_prepare(args) * bf16_row_bytes(args.dim(kSymbols["dim:k"]));
}

void prepare(const CpuArgs& args) {
  const std::uint32_t k = args.dim(kSymbols["dim:k"]);
  const std::uint64_t t = args.wg[0];
  const auto x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  args.set->rows->round_x(args.buffer<const std::byte>(Operand::x) + t * row_bytes(x_dtype, k), x_dtype,
                          args.shared + t * bf16_row_bytes(k), k);
}

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), k = args.dim(kSymbols["dim:k"]), m = args.dim(kSymbols["dim:m"]);
  const bool is_rounded = n_prepare(args) > 0;
  const auto x_dtype = is_rounded ? DType::kBF16 : static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  const LinearArgs linear{args.buffers[Operand::w],
                          static_cast<DType>(args.symbols[kSymbols["dtype:w"]]),
                          args.is_packed(Operand::w),
                          m,
                          args.buffer<const float>(Operand::bias),
                          is_rounded ? args.shared : args.buffers[Operand::x],
                          x_dtype,
                          is_rounded ? bf16_row_bytes(k) : row_bytes(x_dtype, k),
                          k,
                          n,
                          args.buffer<float>(Operand::y),
                          m,
                          reinterpret_cast<float*>(args.lds),
                          args.set};
  linear_rows(linear, args.wg[0] * kTile, std::min(m, (args.wg[0] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_linear;
const CpuKernel kCpuKernel_linear{"LINEAR",
                                  run,
                                  kSymbols,
                                  {{"m", kTile}, {}},
                                  KeyTypes::kWeights,
                                  [](const std::uint32_t* s) { return std::uint64_t{s[kSymbols["dim:k"]]} * 4; },
                                  prepare,
                                  n_prepare,
                                  shared_bytes};

}  // namespace zinc_rt::cpu
