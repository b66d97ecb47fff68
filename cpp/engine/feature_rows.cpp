#include "engine/feature_rows.h"

#include <algorithm>

namespace zinc_rt {

FeatureRows::FeatureRows(std::uint32_t n_slots, std::uint32_t dim)
    : dim_(dim), slots_(n_slots), rows_(std::size_t{n_slots} * kMost * dim) {}

void FeatureRows::add(std::uint32_t slot, sched::RequestId request, std::uint32_t begin, std::span<const float> rows) {
  if (dim_ == 0 || rows.empty()) return;
  Slot& s = slots_[slot];
  const Range kept = range(slot, request);
  s.request = request;
  s.kept.first = begin < kept.first || begin > kept.end ? begin : kept.first;
  s.kept.end = begin + static_cast<std::uint32_t>(rows.size() / dim_);
  if (s.kept.end - s.kept.first > kMost) s.kept.first = s.kept.end - kMost;
  for (std::uint32_t position = std::max(begin, s.kept.first); position < s.kept.end; ++position)
    std::ranges::copy(rows.subspan(std::size_t{position - begin} * dim_, dim_),
                      rows_.begin() + static_cast<std::ptrdiff_t>(at(slot, position)));
}

FeatureRows::Range FeatureRows::range(std::uint32_t slot, sched::RequestId request) const {
  return slots_[slot].request == request ? slots_[slot].kept : Range{};
}

std::span<const float> FeatureRows::row(std::uint32_t slot, std::uint32_t position) const {
  return std::span(rows_).subspan(at(slot, position), dim_);
}

}  // namespace zinc_rt
