#include "server/batches/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "server/batches/batch_object.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMostKept = 10000;  // batches per tenant, including those that have ended
constexpr std::int64_t kSweepEach_s = 3600;

std::int64_t unix_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

ApiError no_batch(const std::string& id) {
  return make_error(404, fmt::format("[batches] there is no \"{}\" of this tenant; batches are kept for {} days",
                                     id.substr(0, 100), StoredFiles::kKept_s / 86400));
}

ApiError too_many(std::size_t n, std::size_t most, const char* what) {
  auto error = make_error(429, fmt::format("[batches] this tenant has {} batches {}, {} allowed", n, what, most));
  error.code = "rate_limit_exceeded";
  error.retry_after_s = 60;
  return error;
}

}  // namespace

Status Batches::start(const Router& router) {
  router_ = &router;
  ZRT_TRY(const auto rows, core_.store->objects().labelled(kBatchKind, unfinished_statuses()));
  std::set<std::string> outputs;
  for (const auto& row : rows) {
    const auto batch = parse_json(row.body);
    if (!batch) return fail(StatusCode::kCorrupt, "[state] batch {} cannot be read", row.id);
    outputs.insert({output_id_of(row.id), errors_id_of(row.id)});
    const std::lock_guard lock(mutex_);
    add(row.tenant, *batch);
  }
  return core_.files.remove_strays(outputs);
}

void Batches::add(const std::string& tenant, const Json& batch) {
  auto item = std::make_shared<Item>();
  item->tenant = tenant;
  item->id = batch["id"].get<std::string>();
  item->input = batch["input_file_id"].get<std::string>();
  item->expires_at = batch["expires_at"].get<std::int64_t>();
  item->is_cancelled = batch["status"] == "cancelling";
  lanes_[tenant].items.push_back(std::move(item));
}

void Batches::look() {
  std::vector<std::string> tenants;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [tenant, lane] : lanes_) tenants.push_back(tenant);
  }
  for (const auto& tenant : tenants) wake(tenant);
  const auto now = unix_s();
  if (now < swept_s_ + kSweepEach_s) return;
  swept_s_ = now;
  work_.post([this, now] { sweep(now); });
}

void Batches::sweep(std::int64_t now) {
  core_.files.sweep(now,
                    [&](const std::string& tenant, const std::string& id) { return !user_of(tenant, id).empty(); });
  const auto old = core_.store->objects().names(kBatchKind, "", now - StoredFiles::kKept_s + 1);
  if (!old) return log().error("{}", old.error().message);
  for (const auto& row : *old) {
    if (item_of(row.tenant, row.id)) continue;
    if (const auto removed = core_.store->objects().remove(kBatchKind, row.tenant, row.id); !removed)
      log().error("{}", removed.error().message);
  }
}

void Batches::close() {
  std::vector<std::shared_ptr<BatchRun>> runs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [tenant, lane] : lanes_)
      for (const auto& item : lane.items)
        if (item->run) runs.push_back(item->run);
  }
  for (const auto& run : runs) run->abandon();
  work_.stop();
}

std::uint32_t Batches::n_under_way() const {
  std::uint32_t n = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [tenant, lane] : lanes_)
    for (const auto& item : lane.items)
      if (item->run) n += item->run->n_under_way();
  return n;
}

Status Batches::put(const std::string& tenant, const Json& batch) {
  return core_.store->objects().put({kBatchKind, tenant, batch["id"].get<std::string>(),
                                     batch["created_at"].get<std::int64_t>(), batch["status"].get<std::string>(), 0,
                                     batch.dump()});
}

ApiResult<Json> Batches::change(const std::string& tenant, const std::string& id, const Change& change) {
  const std::lock_guard lock(changing_);
  const auto row = core_.store->objects().find(kBatchKind, tenant, id);
  if (!row) return std::unexpected(to_api_error(row.error()));
  if (!*row) return std::unexpected(no_batch(id));
  ZRT_TRY(auto batch, parse_json((*row)->body));
  ZRT_TRY(const bool has_changed, change(batch));
  if (!has_changed) return batch;
  if (const auto stored = put(tenant, batch); !stored) return std::unexpected(to_api_error(stored.error()));
  return batch;
}

ApiResult<Json> Batches::create(const std::string& tenant, const Json& body) {
  ZRT_CHECK_OK(core_.files.expect_kept());
  ZRT_TRY(const auto call, read_batch_call(body));
  const auto wrong_file = [](const std::string& what) { return wrong_field("input_file_id", what); };
  ZRT_TRY(const auto file, core_.files.find(tenant, call.input_file_id, "input_file_id"));
  if (file["purpose"] != "batch")
    return wrong_file(fmt::format("\"{}\" is a file of purpose {}, batch wanted", call.input_file_id,
                                  file["purpose"].get<std::string>()));
  ZRT_TRY(const auto room, core_.files.room_of(tenant));
  if (room == 0) return wrong_file("the tenant's files have no room for the answers: delete some");
  const std::lock_guard lock(changing_);
  const auto kept = core_.store->objects().sum(kBatchKind, tenant);
  if (!kept) return std::unexpected(to_api_error(kept.error()));
  if (kept->n_objects >= kMostKept) return std::unexpected(too_many(kept->n_objects, kMostKept, "of the last 30 days"));
  {
    const std::lock_guard lanes_lock(mutex_);
    const auto lane = lanes_.find(tenant);
    const auto n = lane == lanes_.end() ? 0 : lane->second.items.size();
    if (n >= kMostUnfinished) return std::unexpected(too_many(n, kMostUnfinished, "that have not ended"));
  }
  auto batch = new_batch("batch_" + new_id(), call, unix_s(), kWindow_s);
  if (const auto stored = put(tenant, batch); !stored) return std::unexpected(to_api_error(stored.error()));
  {
    const std::lock_guard lanes_lock(mutex_);
    add(tenant, batch);
  }
  wake(tenant);
  return batch;
}

ApiResult<Json> Batches::find(const std::string& tenant, const std::string& id) {
  ZRT_CHECK_OK(core_.files.expect_kept());
  ZRT_TRY(auto batch, change(tenant, id, [](const Json&) { return false; }));
  return with_counts(tenant, std::move(batch));
}

ApiResult<std::string> Batches::list(const std::string& tenant, const ListPage& page) {
  ZRT_CHECK_OK(core_.files.expect_kept());
  return list_of(core_.store->objects(), {kBatchKind, tenant, "", page.after, page.is_ascending, page.limit},
                 [&](const StoredObject& row) {
                   if (!item_of(tenant, row.id)) return row.body;
                   auto batch = parse_json(row.body);
                   return batch ? with_counts(tenant, *std::move(batch)).dump() : row.body;
                 });
}

ApiResult<Json> Batches::cancel(const std::string& tenant, const std::string& id) {
  ZRT_CHECK_OK(core_.files.expect_kept());
  ZRT_TRY(auto batch, change(tenant, id, [&](Json& batch) -> ApiResult<bool> {
            const auto status = batch["status"].get<std::string>();
            if (status == "cancelling" || status == "cancelled") return false;
            if (status != "validating" && status != "in_progress")
              return std::unexpected(
                  make_error(409, fmt::format("[batches] \"{}\" is {}: it cannot be cancelled", id, status)));
            set_status(batch, "cancelling", unix_s());
            return true;
          }));
  if (const auto item = item_of(tenant, id)) {
    item->is_cancelled = true;
    wake(tenant);
  }
  return with_counts(tenant, std::move(batch));
}

std::shared_ptr<Batches::Item> Batches::item_of(const std::string& tenant, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto lane = lanes_.find(tenant);
  if (lane == lanes_.end()) return nullptr;
  const auto& items = lane->second.items;
  const auto it = std::ranges::find_if(items, [&](const auto& item) { return item->id == id; });
  return it == items.end() ? nullptr : *it;
}

std::string Batches::user_of(const std::string& tenant, const std::string& file_id) const {
  const std::lock_guard lock(mutex_);
  const auto lane = lanes_.find(tenant);
  if (lane == lanes_.end()) return {};
  for (const auto& item : lane->second.items)
    if (item->input == file_id) return item->id;
  return {};
}

// Adds the current counts of a running batch. If the batch has ended, the state store already has its counts.
Json Batches::with_counts(const std::string& tenant, Json batch) const {
  const auto item = has_ended(batch) ? nullptr : item_of(tenant, batch["id"].get_ref<const std::string&>());
  const std::lock_guard lock(mutex_);
  if (!item || !item->run) return batch;
  const auto counts = item->run->counts();
  set_counts(batch, counts.completed, counts.failed, counts.usage);
  return batch;
}

void Batches::forget(const std::string& tenant) {
  std::vector<std::shared_ptr<BatchRun>> runs;
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    const auto lane = lanes_.find(tenant);
    if (lane == lanes_.end()) return;
    for (const auto& item : lane->second.items) {
      if (item->run) runs.push_back(item->run);
      ids.push_back(item->id);
    }
    lanes_.erase(lane);
  }
  for (const auto& run : runs) run->abandon();
  for (const auto& id : ids) {
    remove_outputs(id);
    core_.files.note_growing(tenant, id, 0);
  }
}

void Batches::remove_outputs(const std::string& id) const {
  std::error_code ignored;
  for (const auto& output : {output_id_of(id), errors_id_of(id)})
    std::filesystem::remove(core_.files.path_of(output), ignored);
}

}  // namespace zinc_rt::server
