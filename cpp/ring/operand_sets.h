// OperandSets knows which buffer objects of a ring hold operands twice, so that a step can be filled while another one
// runs (Ring::use_operand_sets).
// Thread rule: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace zinc_rt::ring {

class OperandSets {
 public:
  // Returns false if there is no room for another buffer object.
  bool add(std::uint32_t bo, std::uint64_t stride) {
    if (n_ == entries_.size()) return false;
    entries_[n_++] = {bo, stride};
    return true;
  }
  // Returns the bytes from an operand in the first set to the same operand in set number `set`; 0 if the buffer object
  // holds its operands once.
  std::uint64_t offset(std::uint32_t bo, std::uint32_t set) const {
    if (set == 0) return 0;
    const auto end = entries_.begin() + n_;
    const auto entry = std::find_if(entries_.begin(), end, [&](const Entry& e) { return e.bo == bo; });
    return entry == end ? 0 : entry->stride;
  }

 private:
  struct Entry {
    std::uint32_t bo = 0;
    std::uint64_t stride = 0;
  };
  std::array<Entry, 4> entries_{};
  std::uint32_t n_ = 0;
};

}  // namespace zinc_rt::ring
