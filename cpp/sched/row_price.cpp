#include "sched/row_price.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt::sched {
namespace {

// A step that took longer than expected moves the price by kUp x the difference, and counts for at most kLongestOutlier
// times the price. Such a step may have prepared what later steps use, such as a CUDA graph, or the process was
// descheduled. A step that took less time sets the price.
constexpr double kUp = 1.0 / 8, kLongestOutlier = 2;
// The mean number of rows of a class covers at most this many steps.
constexpr double kCounted = 16;
// The first step of a class is ignored if it takes more than this multiple of the expected time.
constexpr double kLongFirst = 1.5;
// Each row beyond the largest observed step adds this fraction of that step's price.
constexpr double kFurtherRow = 1.0 / 64;

}  // namespace

// Returns the class of a number of rows. Each number up to kExact has a class of its own. Above kExact, every four
// classes cover twice as many rows as the four classes before. Each class begins one row after a multiple of a power of
// two, because the stairs of kernels begin there.
std::size_t RowPrice::class_of(std::uint32_t rows) {
  if (rows <= kExact) return std::max(rows, 1u) - 1;
  const auto quarter = static_cast<std::size_t>(4 * std::log2(static_cast<double>(rows - 1) / kExact));
  return std::min(kExact + quarter, kClasses - 1);
}

void RowPrice::observe(std::uint32_t rows, double us) {
  Class& c = classes_[class_of(rows)];
  us = std::max(us, 0.0);
  if (c.n == 0 && is_known_ && !c.has_begun && us > kLongFirst * this->us(rows)) {
    c.has_begun = true;
    return;
  }
  c.n = std::min(c.n + 1, kCounted);
  c.rows += (rows - c.rows) / c.n;
  const bool is_long = c.n > 1 && us > c.us;
  c.us = is_long ? c.us + kUp * (std::min(us, kLongestOutlier * c.us) - c.us) : us;
  is_known_ = true;
}

std::uint32_t RowPrice::most_seen() const {
  for (std::size_t i = kClasses; i-- > 0;)
    if (classes_[i].n > 0) return static_cast<std::uint32_t>(classes_[i].rows);
  return 0;
}

double RowPrice::us(std::uint32_t rows) const {
  const Class *below = nullptr, *above = nullptr;  // the nearest known classes, by their mean numbers of rows
  for (std::size_t i = class_of(rows) + 1; i-- > 0 && below == nullptr;)
    if (classes_[i].n > 0 && classes_[i].rows <= rows) below = &classes_[i];
  for (std::size_t i = class_of(rows); i < kClasses && above == nullptr; ++i)
    if (classes_[i].n > 0 && classes_[i].rows >= rows) above = &classes_[i];
  if (below == nullptr) return above == nullptr ? 0 : above->us;
  if (above == nullptr) return below->us * (1 + kFurtherRow * (rows - below->rows));
  if (above->rows <= below->rows) return below->us;
  return below->us + (above->us - below->us) * (rows - below->rows) / (above->rows - below->rows);
}

}  // namespace zinc_rt::sched
