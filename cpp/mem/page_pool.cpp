#include "mem/page_pool.h"

#include "base/error.h"

namespace zinc_rt::mem {

PagePool::PagePool(std::uint32_t n_pages) : metas_(n_pages) {
  free_.reserve(n_pages);
  for (std::uint32_t page = n_pages; page > 0; --page) free_.push_back(page - 1);
}

std::uint32_t PagePool::take(std::uint32_t owner_slot, std::uint32_t tenant_id) {
  if (free_.empty()) return kNone;
  const std::uint32_t page = free_.back();
  free_.pop_back();
  metas_[page] = {.ref_count = 1, .owner_slot = owner_slot, .tenant_id = tenant_id, .token_count = 0};
  return page;
}

Status PagePool::check_used(std::uint32_t page, const char* what) const {
  if (page < metas_.size() && metas_[page].ref_count > 0) return {};
  return fail(StatusCode::kInternal, "[page_pool] {} page {}, which is free or not there; pool of {}, {} free", what,
              page, metas_.size(), free_.size());
}

Status PagePool::add_ref(std::uint32_t page) {
  ZRT_CHECK_OK(check_used(page, "add_ref of"));
  ++metas_[page].ref_count;
  return {};
}

Status PagePool::release(std::uint32_t page) {
  ZRT_CHECK_OK(check_used(page, "release of"));
  if (--metas_[page].ref_count > 0) return {};
  metas_[page] = {};
  free_.push_back(page);
  return {};
}

}  // namespace zinc_rt::mem
