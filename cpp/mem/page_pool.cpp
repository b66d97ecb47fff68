#include "mem/page_pool.h"

#include "base/error.h"

namespace zinc_rt::mem {

PagePool::PagePool(std::uint32_t n_pages) : is_free_(n_pages, true) {
  free_.reserve(n_pages);
  for (std::uint32_t page = n_pages; page > 0; --page) free_.push_back(page - 1);
}

Result<std::vector<std::uint32_t>> PagePool::take(std::uint32_t n) {
  if (n > free_.size())
    return fail(StatusCode::kExhausted, "[page_pool] needs {} pages, {} free of {}", n, free_.size(), is_free_.size());
  std::vector<std::uint32_t> pages;
  pages.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    pages.push_back(free_.back());
    is_free_[free_.back()] = false;
    free_.pop_back();
  }
  return pages;
}

Status PagePool::give_back(std::span<const std::uint32_t> pages) {
  Status status;
  for (const auto page : pages) {
    if (page >= is_free_.size() || is_free_[page]) {
      status = fail(StatusCode::kInternal, "[page_pool] page {} given back but not taken, pool of {}", page,
                    is_free_.size());
      continue;
    }
    is_free_[page] = true;
    free_.push_back(page);
  }
  return status;
}

}  // namespace zinc_rt::mem
