#include "base/kv_type.h"

#include <algorithm>
#include <iterator>

namespace zinc_rt {
namespace {

bool is_any(std::uint32_t) {
  return true;
}
bool is_of_32(std::uint32_t head_dim) {
  return head_dim % 32 == 0;
}
bool is_of_16(std::uint32_t head_dim) {
  return head_dim % 16 == 0 && head_dim <= 512;
}
bool is_rotatable(std::uint32_t head_dim) {
  return head_dim == 64 || head_dim == 128 || head_dim == 256;
}

constexpr KvType kTypes[] = {
    {"f16", DType::kF16, DType::kF16, false},    {"f32", DType::kF32, DType::kF32, false},
    {"q8_0", DType::kQ8_0, DType::kQ8_0, false}, {"k8v4", DType::kR8, DType::kR4, false},
    {"k4v4", DType::kR4, DType::kR4, true},      {"i16", DType::kI16, DType::kI16, false},
};

constexpr KvCell kCells[] = {
    {DType::kF16, KvLayout::kTokens, 0, "any", is_any},
    {DType::kF32, KvLayout::kTokens, 0, "any", is_any},
    {DType::kQ8_0, KvLayout::kTokens, 0, "in multiples of 32", is_of_32},
    {DType::kR8, KvLayout::kRotated, 0, "of 64, 128 or 256", is_rotatable},
    {DType::kR4, KvLayout::kRotated, 0, "of 64, 128 or 256", is_rotatable},
    {DType::kI16, KvLayout::kIntegers, 1, "in multiples of 16 up to 512", is_of_16},
};

}  // namespace

std::span<const KvType> kv_types() {
  return kTypes;
}

const KvType* find_kv_type(std::string_view name) {
  const auto* row = std::ranges::find(kTypes, name, &KvType::name);
  return row == std::end(kTypes) ? nullptr : row;
}

const KvType* find_kv_type(DType k, DType v) {
  const auto* row = std::ranges::find_if(kTypes, [&](const KvType& type) { return type.k == k && type.v == v; });
  return row == std::end(kTypes) ? nullptr : row;
}

std::vector<std::string> kv_type_names() {
  std::vector<std::string> names;
  for (const KvType& type : kTypes) names.emplace_back(type.name);
  return names;
}

const KvCell* find_kv_cell(DType dtype) {
  const auto* row = std::ranges::find(kCells, dtype, &KvCell::dtype);
  return row == std::end(kCells) ? nullptr : row;
}

}  // namespace zinc_rt
