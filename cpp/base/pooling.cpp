#include "base/pooling.h"

#include <algorithm>
#include <iterator>

namespace zinc_rt {
namespace {

struct PoolingRow {
  std::string_view name;
  Pooling pooling;
};

constexpr PoolingRow kRows[] = {
    {"none", Pooling::kNone}, {"mean", Pooling::kMean}, {"cls", Pooling::kCls},
    {"last", Pooling::kLast}, {"rank", Pooling::kRank},
};

}  // namespace

std::optional<Pooling> find_pooling(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &PoolingRow::name);
  return row == std::end(kRows) ? std::nullopt : std::optional(row->pooling);
}

std::string_view to_string(Pooling pooling) {
  return std::ranges::find(kRows, pooling, &PoolingRow::pooling)->name;
}

std::vector<std::string> pooling_names() {
  std::vector<std::string> names;
  for (const PoolingRow& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace zinc_rt
