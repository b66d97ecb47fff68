#include "base/near_name.h"

#include <algorithm>
#include <vector>

#include "base/letter_case.h"

namespace zinc_rt {
namespace {

// Returns the number of edits between two texts (the optimal string alignment distance). Keeps only three rows of the
// distance table at a time.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string near_name(std::string_view given, std::span<const std::string> names) {
  // Longer names (in bytes) are not compared, because the time is proportional to the product of the lengths.
  constexpr std::size_t kLongest = 200;
  if (given.size() > kLongest) return {};
  const auto wanted = to_lower(given);
  std::size_t least = std::min<std::size_t>(2, given.size() / 3) + 1;
  std::string best;
  for (const auto& name : names) {
    if (name.size() > kLongest) continue;
    const auto n = edits(wanted, to_lower(name));
    if (n < least) least = n, best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view given, std::span<const std::string> names) {
  const auto name = near_name(given, names);
  return name.empty() ? name : "; did you mean " + name + "?";
}

}  // namespace zinc_rt
