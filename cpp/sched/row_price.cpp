#include "sched/row_price.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt::sched {
namespace {

// A step that took longer than expected moves the price by this part of the difference, and counts for at most
// kLongestOutlier times the price. It may have prepared what later steps use, such as a graph of kernels, or the process
// was descheduled. A step that took less time sets the price.
constexpr double kUp = 1.0 / 8, kLongestOutlier = 2;
// For the mean number of rows of a class.
constexpr double kCounted = 16;
// The first step with so many rows does not count if it takes more than this multiple of what is expected.
constexpr double kLongFirst = 1.5;
// What a row adds to a step, of the price of the largest step that is known.
constexpr double kFurtherRow = 1.0 / 64;

}  // namespace

// Numbers up to kExact have a class each. Behind them four classes cover twice the rows of the four before. The first
// number of a class is one more than a multiple of a power of two, because a stair of kernels begins there.
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

double RowPrice::us(std::uint32_t rows) const {
  const Class *below = nullptr, *above = nullptr;  // the nearest that are known, by their mean numbers of rows
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
