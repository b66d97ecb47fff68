// PagePool records which KV pages are free, and how many references each used page has. A page holds the K and V of all
// attention layers for kPageTokens tokens. This class only counts and allocates no device memory.
// Thread rule: one thread at a time. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/common/kv_page.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mem {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;  // stands for no page, slot, node or checkpoint

inline std::uint32_t pages_for(std::uint64_t n_tokens) {
  return static_cast<std::uint32_t>((n_tokens + kPageTokens - 1) / kPageTokens);
}

// PageMeta is the entry of a page in the page table, which a device can mirror.
struct PageMeta {
  std::uint32_t ref_count = 0;       // number of slots that list the page, plus 1 if the prefix cache holds it; 0: free
  std::uint32_t owner_slot = kNone;  // slot that writes the page; kNone if the page is free, or shared and not written
  std::uint32_t tenant_id = kNone;   // tenant whose tokens the page holds; kNone if it is free
  std::uint32_t token_count = 0;     // number of tokens written, up to kPageTokens
};
static_assert(sizeof(PageMeta) == 16);

class PagePool {
 public:
  explicit PagePool(std::uint32_t n_pages);
  std::uint32_t n_pages() const { return static_cast<std::uint32_t>(metas_.size()); }
  std::uint32_t n_free() const { return static_cast<std::uint32_t>(free_.size()); }
  const PageMeta& meta(std::uint32_t page) const { return metas_[page]; }
  std::span<const PageMeta> metas() const { return metas_; }

  // Takes a free page and gives it one reference. Returns kNone if no page is free. Takes the page that was freed last,
  // and in a new pool the page with the lowest id.
  std::uint32_t take(std::uint32_t owner_slot, std::uint32_t tenant_id);
  // Adds a reference to a used page. Errors: kInternal for a page that is free or does not exist.
  Status add_ref(std::uint32_t page);
  // Removes a reference. The page becomes free when no reference is left. Errors: kInternal for a page that is free or
  // does not exist.
  Status release(std::uint32_t page);
  void set_owner(std::uint32_t page, std::uint32_t slot) { metas_[page].owner_slot = slot; }
  void set_token_count(std::uint32_t page, std::uint32_t n) { metas_[page].token_count = n; }

 private:
  Status check_used(std::uint32_t page, const char* what) const;

  std::vector<PageMeta> metas_;
  std::vector<std::uint32_t> free_;  // used as a stack: the page freed last is taken first
};

}  // namespace zinc_rt::mem
