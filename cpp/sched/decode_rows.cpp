// Which decoding slots a step has: all of them, unless a few rows make it long for everybody.
//
// A step ends for all of its rows at once, and a row behind a long text takes many times as long as one behind a short
// text. Slots are shared fairly; this shares the time of a step. Where a step of all rows would take longer than the
// gap that its most urgent streams are promised, the tenants whose rows take much more than their share of it have them
// take turns, a few in each step. A tenant keeps its share of the step's time at least, and one row.
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

// Of the gap that a class is promised, less the error of an estimate.
constexpr double kOfGap = 0.85, kInteractiveGapUs = 30'000, kBatchGapUs = 250'000;
// Rows take turns from so many times their tenant's share on, so that texts of about one length never do.
constexpr double kHeavy = 1.5;

}  // namespace

void Scheduler::choose_decodes() {
  tenant_rows_.clear();
  if (!cost_.is_known()) return;
  const double fixed_us = cost_.step_us({});
  const auto row_us = [&](const Request& r) {
    StepSize row;
    row.add(r.n_done, 1);
    return cost_.step_us(row) - fixed_us;
  };
  Qos urgent = Qos::kBatch;
  double rows_us = 0, weights = 0;
  for (const Request* r : decoding_) {
    urgent = std::min(urgent, r->params.qos);
    auto mine = std::ranges::find(tenant_rows_, r->params.tenant, &TenantRows::tenant);
    if (mine == tenant_rows_.end()) {
      const double weight = tenants_[r->params.tenant].quota.weight;
      mine = tenant_rows_.insert(mine, {r->params.tenant, weight});
      weights += weight;
    }
    mine->us += row_us(*r);
    mine->most_urgent = std::min(mine->most_urgent, r->params.qos);
    rows_us += row_us(*r);
  }
  const double gaps[kQosCount] = {kOfGap * kInteractiveGapUs, kOfGap * static_cast<double>(options_.standard_gap),
                                  kOfGap * kBatchGapUs};
  const double gap = gaps[static_cast<std::size_t>(urgent)];
  if (tenant_rows_.size() < 2 || fixed_us + rows_us <= gap) return;

  double light_us = 0, heavy_weights = 0;
  Qos light_urgent = Qos::kBatch;
  for (auto& t : tenant_rows_) {
    t.share_us = rows_us * t.weight / weights;
    t.is_heavy = t.us > kHeavy * t.share_us;
    if (t.is_heavy) {
      heavy_weights += t.weight;
    } else {
      light_us += t.us;
      light_urgent = std::min(light_urgent, t.most_urgent);
    }
  }
  // Each step pays the fixed part anew, so the rows that take turns get no less than that.
  const double room_us = std::max(gap - fixed_us - light_us, fixed_us);
  for (auto& t : tenant_rows_) t.left_us = std::max(t.share_us, room_us * t.weight / heavy_weights);

  // Those that have waited longest come first. A more urgent class does not wait for a less urgent one.
  std::ranges::sort(decoding_, [](const Request* a, const Request* b) {
    return a->decoded_in != b->decoded_in ? a->decoded_in < b->decoded_in : a->slot < b->slot;
  });
  std::erase_if(decoding_, [&](const Request* r) {
    auto& mine = *std::ranges::find(tenant_rows_, r->params.tenant, &TenantRows::tenant);
    if (!mine.is_heavy || r->params.qos < light_urgent) return false;
    const bool is_first = !std::exchange(mine.has_row, true);
    const bool fits = row_us(*r) <= mine.left_us;
    if (is_first || fits) mine.left_us -= row_us(*r);
    return !is_first && !fits;
  });
  std::ranges::sort(decoding_, {}, [](const Request* r) { return r->slot; });
}

}  // namespace zinc_rt::sched
