#include "sched/row_price.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt::sched {
namespace {

constexpr double kCounted = 16;  // the mean of a class is over so many steps
// A step counts for at most this multiple of what is known, because the process may have been descheduled.
constexpr double kLongestOutlier = 4;
constexpr double kOutliersFrom = 4;
// The first step with so many rows may prepare what later ones use, such as a graph of kernels. If it takes more than this
// multiple of what is expected, it does not count.
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
  if (c.n >= kOutliersFrom) us = std::min(us, kLongestOutlier * c.us);
  c.n = std::min(c.n + 1, kCounted);
  c.rows += (rows - c.rows) / c.n;
  // Of the first steps the shortest counts, because a step may prepare what later ones use.
  c.us = c.n < kOutliersFrom && c.n > 1 ? std::min(c.us, us) : c.us + (us - c.us) / c.n;
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
