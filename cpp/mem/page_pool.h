// Ids of KV pages: which are free. A page holds the K and V of all attention layers for kPageTokens tokens.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mem {

inline constexpr std::uint32_t kPageTokens = 16;

inline std::uint32_t pages_for(std::uint64_t n_tokens) {
  return static_cast<std::uint32_t>((n_tokens + kPageTokens - 1) / kPageTokens);
}

class PagePool {
 public:
  explicit PagePool(std::uint32_t n_pages);
  std::uint32_t n_pages() const { return static_cast<std::uint32_t>(is_free_.size()); }
  std::uint32_t n_free() const { return static_cast<std::uint32_t>(free_.size()); }

  // Takes n pages, or none: kExhausted with both numbers. Lower ids first.
  Result<std::vector<std::uint32_t>> take(std::uint32_t n);
  // Gives pages back. Errors: kInternal for a page that is free already or does not exist; the others are given back.
  Status give_back(std::span<const std::uint32_t> pages);

 private:
  std::vector<std::uint32_t> free_;  // a stack, the lowest id on top at the start
  std::vector<bool> is_free_;
};

}  // namespace zinc_rt::mem
