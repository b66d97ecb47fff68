// FeatureRows keeps the features (StepInput::on_features) of the last tokens of each slot's text. A block for multi-token
// prediction reads them when it guesses.
// Thread rule: one thread at a time. Nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/types.h"

namespace zinc_rt {

class FeatureRows {
 public:
  // The most tokens of a slot whose features are kept.
  static constexpr std::uint32_t kMost = 128;

  // dim: the width of a token's features. If it is 0, nothing is kept.
  FeatureRows(std::uint32_t n_slots, std::uint32_t dim);

  // Adds the features of tokens of the request in the slot, from position `begin` on. They replace those of later
  // positions. What was kept of another request, or ends before `begin`, is forgotten.
  // REQUIRES: the size of `rows` is a multiple of dim.
  void add(std::uint32_t slot, sched::RequestId request, std::uint32_t begin, std::span<const float> rows);

  // The positions [first, end) of the request's text whose features are kept; empty if the slot has another request.
  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  Range range(std::uint32_t slot, sched::RequestId request) const;
  // REQUIRES: the position is in the slot's range.
  std::span<const float> row(std::uint32_t slot, std::uint32_t position) const;

  std::uint32_t dim() const { return dim_; }

 private:
  struct Slot {
    sched::RequestId request = 0;
    Range kept;
  };
  std::size_t at(std::uint32_t slot, std::uint32_t position) const {
    return (std::size_t{slot} * kMost + position % kMost) * dim_;
  }

  std::uint32_t dim_;
  std::vector<Slot> slots_;
  std::vector<float> rows_;  // kMost rows per slot; position p is in row p % kMost
};

}  // namespace zinc_rt
