#include "engine/timeline.h"

#include <algorithm>

#include "base/error.h"
#include "engine/timeline_json.h"

namespace zinc_rt {

Status Timeline::start(std::uint32_t capacity) {
  if (capacity == 0)
    return fail(StatusCode::kInvalidArgument, "[timeline] a capacity of 0 records; 1 or more, {} by default",
                kDefaultCapacity);
  std::vector<Record> ring(capacity);  // made before the lock is taken, because clearing many records takes time
  const std::lock_guard lock(mutex_);
  ring_.swap(ring);
  n_added_ = 0;
  names_.requests.clear();
  named_requests_.clear();
  on_.store(true, std::memory_order_relaxed);
  return {};
}

void Timeline::stop() {
  const std::lock_guard lock(mutex_);
  on_.store(false, std::memory_order_relaxed);
}

void Timeline::add(const Record& record) {
  const std::lock_guard lock(mutex_);
  if (!is_on()) return;  // stop() was called after the caller's check
  ring_[n_added_++ % ring_.size()] = record;
}

void Timeline::name_tenant(std::uint32_t tenant, std::string_view name) {
  const std::lock_guard lock(mutex_);
  names_.tenants.insert_or_assign(tenant, std::string(name));
}

void Timeline::name_request(std::uint32_t model, std::uint64_t request, RequestName name) {
  if (!is_on() || name.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!names_.requests.insert_or_assign({model, request}, std::move(name)).second) return;
  named_requests_.emplace_back(model, request);
  if (named_requests_.size() <= ring_.size()) return;
  names_.requests.erase(named_requests_.front());
  named_requests_.pop_front();
}

std::uint64_t Timeline::n_records() const {
  const std::lock_guard lock(mutex_);
  return std::min<std::uint64_t>(n_added_, ring_.size());
}

std::uint64_t Timeline::n_dropped() const {
  const std::lock_guard lock(mutex_);
  return n_added_ - std::min<std::uint64_t>(n_added_, ring_.size());
}

Status Timeline::write_json(const std::string& path) const {
  std::vector<Record> records;
  TimelineNames names;
  std::uint64_t n_added = 0;
  {
    const std::lock_guard lock(mutex_);
    n_added = n_added_;
    const auto n = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(n_added, ring_.size()));
    records.assign(ring_.begin(), ring_.begin() + n);
    names = names_;
  }
  return write_timeline(path, std::move(records), names, n_added);
}

}  // namespace zinc_rt
