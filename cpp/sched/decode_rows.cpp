// Chooses which decoding slots take part in a step. All slots do, unless a few would make the step long for all others.
// A step ends for all of its rows at once, and a row of a long text takes many times as long as a row of a short text.
// So the time of a step must be shared fairly, as slots are. If a step of all rows would take longer than the gap
// promised to its most urgent streams, the tenants whose rows take much more than their share alternate their rows:
// only a few of them are in each step. Each tenant gets at least its share of the step's time, and at least one row.
#include <algorithm>
#include <utility>

#include "sched/batch_planner.h"

namespace zinc_rt::sched {
namespace {

constexpr double kInteractiveGapUs = 30'000, kBatchGapUs = 250'000;
// A tenant's rows alternate only if they take more than this multiple of its share, so rows of texts of similar length
// never alternate.
constexpr double kHeavy = 1.5;

}  // namespace

void BatchPlanner::choose_decodes(std::vector<Request*>& decoding) {
  if (!cost_.is_known()) return;
  Qos urgent = Qos::kBatch;
  StepSize all;
  for (const Request* r : decoding) {
    urgent = std::min(urgent, r->params.qos);
    all.add(r->n_done, 1);
  }
  const double gaps[kQosCount] = {kInteractiveGapUs, static_cast<double>(options_.standard_gap), kBatchGapUs};
  const double gap = kOfGap * gaps[static_cast<std::size_t>(urgent)];
  if (cost_.step_us(all) <= gap) return;

  const double fixed_us = cost_.step_us({}), rows_us = cost_.step_us(all) - fixed_us;
  const auto row_us = [&](const Request& r) {
    StepSize row;
    row.add(r.n_done, 1);
    return cost_.step_us(row) - fixed_us;
  };
  tenant_rows_.clear();
  double weights = 0;
  for (const Request* r : decoding) {
    auto mine = std::ranges::find(tenant_rows_, r->params.tenant, &TenantRows::tenant);
    if (mine == tenant_rows_.end()) {
      mine = tenant_rows_.insert(mine, {r->params.tenant, tenants_[r->params.tenant].quota.weight});
      weights += mine->weight;
    }
    mine->us += row_us(*r);
    mine->most_urgent = std::min(mine->most_urgent, r->params.qos);
  }
  if (tenant_rows_.size() < 2) return;

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
  // Each step costs fixed_us again, so the alternating rows get at least as much time as that.
  const double room_us = std::max(gap - fixed_us - light_us, fixed_us);
  for (auto& t : tenant_rows_) t.left_us = std::max(t.share_us, room_us * t.weight / heavy_weights);

  // The rows that have waited longest come first. A row of a more urgent class never waits for rows of a less urgent
  // class.
  std::ranges::sort(decoding, [](const Request* a, const Request* b) {
    return a->decoded_in != b->decoded_in ? a->decoded_in < b->decoded_in : a->slot < b->slot;
  });
  std::erase_if(decoding, [&](const Request* r) {
    auto& mine = *std::ranges::find(tenant_rows_, r->params.tenant, &TenantRows::tenant);
    if (!mine.is_heavy || r->params.qos < light_urgent) return false;
    const double us = row_us(*r);
    if (std::exchange(mine.has_row, true) && us > mine.left_us) return true;
    mine.left_us -= us;
    return false;
  });
  std::ranges::sort(decoding, {}, [](const Request* r) { return r->slot; });
}

}  // namespace zinc_rt::sched
