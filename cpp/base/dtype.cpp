#include "base/dtype.h"

#include <array>

namespace zinc_rt {
namespace {

constexpr std::array<DTypeTraits, static_cast<std::size_t>(DType::kCount)> kTraits{{
    {DType::kF32, "f32", 1, 4, true, DType::kF32},
    {DType::kF16, "f16", 1, 2, true, DType::kF32},
    {DType::kBF16, "bf16", 1, 2, true, DType::kF32},
    {DType::kQ4_0, "q4_0", 32, 18, true, DType::kQ8A32},
    {DType::kQ4_1, "q4_1", 32, 20, true, DType::kQ8A32},
    {DType::kQ5_0, "q5_0", 32, 22, true, DType::kQ8A32},
    {DType::kQ5_1, "q5_1", 32, 24, true, DType::kQ8A32},
    {DType::kQ8_0, "q8_0", 32, 34, true, DType::kQ8A32},
    {DType::kQ2_K, "q2_k", 256, 84, true, DType::kQ8A256},
    {DType::kQ3_K, "q3_k", 256, 110, true, DType::kQ8A256},
    {DType::kQ4_K, "q4_k", 256, 144, true, DType::kQ8A256},
    {DType::kQ5_K, "q5_k", 256, 176, true, DType::kQ8A256},
    {DType::kQ6_K, "q6_k", 256, 210, true, DType::kQ8A256},
    {DType::kIQ4_NL, "iq4_nl", 32, 18, true, DType::kQ8A32},
    {DType::kIQ4_XS, "iq4_xs", 256, 136, true, DType::kQ8A256},
    {DType::kMXFP4, "mxfp4", 32, 17, true, DType::kQ8A32},
    {DType::kI32, "i32", 1, 4, false, DType::kCount},
    {DType::kU32, "u32", 1, 4, false, DType::kCount},
    {DType::kU8, "u8", 1, 1, false, DType::kCount},
    {DType::kQ8A32, "q8a32", 32, 40, false, DType::kCount},
    {DType::kQ8A256, "q8a256", 256, 292, false, DType::kCount},
    {DType::kR8, "r8", 64, 66, false, DType::kCount},
    {DType::kR4, "r4", 64, 34, false, DType::kCount},
    {DType::kI16, "i16", 1, 2, false, DType::kCount},
    {DType::kFixed16, "fixed16", 256, 514, true, DType::kQ16A256},
    {DType::kQ16A256, "q16a256", 256, 516, false, DType::kCount},
    {DType::kNVFP4, "nvfp4", 64, 36, true, DType::kQ8A32},
    {DType::kIQ3_S, "iq3_s", 256, 110, true, DType::kQ8A256},
    {DType::kIQ3_XXS, "iq3_xxs", 256, 98, true, DType::kQ8A256},
    {DType::kIQ2_S, "iq2_s", 256, 82, true, DType::kQ8A256},
    {DType::kIQ2_XS, "iq2_xs", 256, 74, true, DType::kQ8A256},
    {DType::kIQ2_XXS, "iq2_xxs", 256, 66, true, DType::kQ8A256},
    {DType::kTQ2_0, "tq2_0", 256, 66, true, DType::kQ8A256},
    {DType::kTQ1_0, "tq1_0", 256, 54, true, DType::kQ8A256},
    {DType::kIQ1_S, "iq1_s", 256, 50, true, DType::kQ8A256},
    {DType::kIQ1_M, "iq1_m", 256, 56, true, DType::kQ8A256},
    {DType::kI64, "i64", 1, 8, false, DType::kCount},
}};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kTraits.size(); ++i)
    if (static_cast<std::size_t>(kTraits[i].dtype) != i) return false;
  return true;
}
static_assert(table_is_in_order());

}  // namespace

const DTypeTraits& traits(DType dtype) {
  return kTraits[static_cast<std::size_t>(dtype)];
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& row : kTraits)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

std::vector<DType> weight_types() {
  std::vector<DType> types;
  for (const auto& row : kTraits)
    if (row.is_weight) types.push_back(row.dtype);
  return types;
}

DType act_dtype(DType weight) {
  return traits(weight).act;
}

}  // namespace zinc_rt
