// Runs the batches, from their first line to their files.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "server/batches/batch_object.h"
#include "server/batches/batches.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

std::int64_t clock_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

}  // namespace

void Batches::wake(const std::string& tenant) {
  {
    const std::lock_guard lock(mutex_);
    const auto lane = lanes_.find(tenant);
    if (lane == lanes_.end() || lane->second.is_posted) return;
    lane->second.is_posted = true;
  }
  work_.post(tenant, [this, tenant] { advance(tenant); });
}

// Runs lines of the tenant's first batch. Also ends later batches of the tenant that were cancelled or have expired.
void Batches::advance(const std::string& tenant) {
  std::deque<std::shared_ptr<Item>> items;
  {
    const std::lock_guard lock(mutex_);
    const auto lane = lanes_.find(tenant);
    if (lane == lanes_.end()) return;
    lane->second.is_posted = false;
    items = lane->second.items;
  }
  // A tenant whom only a proxy names does not exist, after a restart, until it sends a request.
  const auto entry = core_.tenants.find(tenant);
  if (!entry) return;
  bool has_turn = true;
  for (const auto& item : items) {
    if (!has_turn && !item->is_cancelled && clock_s() < item->expires_at) continue;
    if (!work_on(item, entry)) {
      has_turn = false;
      if (!item_of(tenant, item->id))
        core_.files.note_growing(tenant, item->id, 0);  // the tenant was removed meanwhile, so nothing grows
      continue;
    }
    core_.files.note_growing(tenant, item->id, 0);  // the output files are now registered in the state store
    const std::lock_guard lock(mutex_);
    const auto lane = lanes_.find(tenant);
    if (lane == lanes_.end()) return;
    std::erase(lane->second.items, item);
    if (lane->second.items.empty()) lanes_.erase(lane);
  }
}

bool Batches::work_on(const std::shared_ptr<Item>& item, const std::shared_ptr<TenantEntry>& entry) {
  auto run = item->run;  // only this thread sets item->run
  if (!run) {
    auto begun = begin(*item, entry);
    // The tenant may have been removed while the output files were being made.
    if ((!begun || !*begun) && !item_of(item->tenant, item->id)) remove_outputs(item->id);
    if (!begun) {
      log().error("batch {}: {}", item->id, begun.error().message);
      // 404 means that the tenant was removed. After another error, the state store may work again later.
      return begun.error().status == 404;
    }
    if (!*begun) return true;
    run = std::move(*begun);
    if (!take_over(item, run)) {
      remove_outputs(item->id);
      return true;
    }
  }
  if (item->is_cancelled)
    run->end_early(BatchEnding::kCancelled);
  else if (clock_s() >= item->expires_at)
    run->end_early(BatchEnding::kExpired);
  return run->step() && finish(*item, *run);
}

// Sets the item's run. Returns false if the tenant was removed meanwhile.
bool Batches::take_over(const std::shared_ptr<Item>& item, const std::shared_ptr<BatchRun>& run) {
  const std::lock_guard lock(mutex_);
  const auto lane = lanes_.find(item->tenant);
  if (lane == lanes_.end() || std::ranges::find(lane->second.items, item) == lane->second.items.end()) return false;
  item->run = run;
  return true;
}

// Opens the run of a batch. Returns null if the batch has ended already.
ApiResult<std::shared_ptr<BatchRun>> Batches::begin(const Item& item, const std::shared_ptr<TenantEntry>& entry) {
  const auto input = core_.files.path_of(item.input);
  const auto unusable = [&](const Error& error) -> ApiResult<std::shared_ptr<BatchRun>> {
    ZRT_CHECK_OK(fail_batch(item, {{0, "file_unusable", error.message, "input_file_id"}}));
    return nullptr;
  };
  const auto nothing = [](const Json&) { return false; };
  ZRT_TRY(auto batch, change(item.tenant, item.id, nothing));
  const auto endpoint = batch["endpoint"].get<std::string>();
  if (batch["in_progress_at"].is_null()) {
    const auto check = item.is_cancelled ? BatchCheck() : check_batch_file(input, endpoint, kMostBatchLines);
    if (!check) return unusable(check.error());
    if (!check->errors.empty()) {
      ZRT_CHECK_OK(fail_batch(item, check->errors));
      return nullptr;
    }
    ZRT_TRY(batch, change(item.tenant, item.id, [&](Json& now) -> ApiResult<bool> {
              const bool is_cancelled = now["status"] == "cancelling";
              set_status(now, is_cancelled ? "cancelled" : "in_progress", clock_s());
              if (!is_cancelled) now["request_counts"]["total"] = check->n_lines;
              return true;
            }));
    if (has_ended(batch)) return nullptr;
  }
  BatchRun::Plan plan;
  plan.input = input;
  plan.output = core_.files.path_of(output_id_of(item.id));
  plan.errors = core_.files.path_of(errors_id_of(item.id));
  plan.access = FileAccess::kOwnerOnly;
  plan.endpoint = endpoint;
  plan.tenant = entry;
  plan.has_room = [this, tenant = item.tenant, id = item.id](std::uint64_t n_bytes) {
    return core_.files.note_growing(tenant, id, n_bytes);
  };
  plan.wake = [this, tenant = item.tenant] { wake(tenant); };
  auto run = BatchRun::open(core_, *router_, std::move(plan));
  if (!run) return unusable(run.error());
  return *std::move(run);
}

ApiResult<void> Batches::fail_batch(const Item& item, const std::vector<LineError>& errors) {
  ZRT_CHECK_OK(change(item.tenant, item.id, [&](Json& batch) -> ApiResult<bool> {
    const bool is_cancelled = batch["status"] == "cancelling";
    set_status(batch, is_cancelled ? "cancelled" : "failed", clock_s());
    batch["errors"] = error_list(errors);
    return true;
  }));
  return {};
}

// Registers the output that was written as files. It may be repeated if a kill or an error of the state store
// interrupted it.
bool Batches::finish(const Item& item, BatchRun& run) {
  const auto done = [&]() -> ApiResult<void> {
    if (const auto synced = run.sync(); !synced) return std::unexpected(make_error(500, synced.error().message));
    ZRT_CHECK_OK(change(item.tenant, item.id, [&](Json& batch) -> ApiResult<bool> {
      if (batch["status"] != "in_progress" || run.ending() == BatchEnding::kExpired) return false;
      set_status(batch, "finalizing", clock_s());
      return true;
    }));
    const auto counts = run.counts();
    // Returns the id of the file, or null if the file has no lines.
    const auto keep = [&](std::uint64_t n_lines, const std::string& id, const char* what) -> ApiResult<Json> {
      std::error_code ignored;
      if (n_lines == 0) std::filesystem::remove(core_.files.path_of(id), ignored);
      if (n_lines == 0) return nullptr;
      ZRT_CHECK_OK(core_.files.adopt(item.tenant, id, fmt::format("{}_{}.jsonl", item.id, what)));
      return id;
    };
    ZRT_TRY(const auto output, keep(counts.completed, output_id_of(item.id), "output"));
    ZRT_TRY(const auto errors, keep(counts.failed, errors_id_of(item.id), "error"));
    ZRT_CHECK_OK(change(item.tenant, item.id, [&](Json& batch) -> ApiResult<bool> {
      batch["output_file_id"] = output;
      batch["error_file_id"] = errors;
      set_counts(batch, counts.completed, counts.failed, counts.usage);
      set_status(batch,
                 batch["status"] == "cancelling"         ? "cancelled"
                 : run.ending() == BatchEnding::kExpired ? "expired"
                                                         : "completed",
                 clock_s());
      return true;
    }));
    return {};
  }();
  if (done) return true;
  log().error("batch {}: {}", item.id, done.error().message);
  return done.error().status == 404;
}

}  // namespace zinc_rt::server
