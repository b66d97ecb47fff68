#include "server/on_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/log.h"
#include "base/near_name.h"

namespace zinc_rt::server {
namespace {

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ApiError try_later(std::string message, double after_s) {
  auto error = make_error(503, std::move(message));
  error.param = "model";
  error.retry_after_s = after_s;
  return error;
}

}  // namespace

void OnDemand::set(std::optional<OnDemandOptions> options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
}

double OnDemand::idle_s(const Use& use) {
  return 1e-3 * static_cast<double>(now_ms() - use.last_ms);
}

std::optional<OnDemandOptions> OnDemand::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

// Reads a folder, so no lock is held.
std::vector<OfferedModel> OnDemand::offered() const {
  const auto o = options();
  return o ? o->offered() : std::vector<OfferedModel>{};
}

const OfferedModel* OnDemand::pick(const std::vector<OfferedModel>& offered, const std::string& name) {
  if (name.empty()) return offered.size() == 1 ? offered.data() : nullptr;
  for (const auto& model : offered)
    if (equals_in_any_case(model.id, name) ||
        std::ranges::any_of(model.aliases, [&](const auto& alias) { return equals_in_any_case(alias, name); }))
      return &model;
  return nullptr;
}

ApiError OnDemand::not_found(const std::string& name, const std::vector<OfferedModel>& offered) const {
  std::vector<std::string> ids;
  for (const auto& model : models_.list()) ids.push_back(model.id);
  for (const auto& model : offered)
    if (std::ranges::find(ids, model.id) == ids.end()) ids.push_back(model.id);
  std::string all;
  for (const auto& id : ids) all += (all.empty() ? "" : ", ") + id;
  auto error = make_error(404, {});
  error.param = "model";
  error.code = "model_not_found";
  if (ids.empty())
    error.message = "[models] there is no model in the models folder; `zinc-rt pull NAME` fetches one";
  else if (name.empty())
    error.message = fmt::format("[models] no model is named, and there are several: {}", all);
  else
    error.message = fmt::format("[models] there is no model \"{}\"{}; these are served: {}", name.substr(0, 200),
                                did_you_mean(name, ids), all);
  return error;
}

void OnDemand::note_use(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto it = uses_.find(id); it != uses_.end()) it->second.last_ms = now_ms();
}

void OnDemand::find(const std::string& name, Asker asker, Then then) {
  std::string id = name;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = ids_.find(to_lower(name)); it != ids_.end()) id = it->second;
  }
  auto model = models_.find(id);
  if (model || !options()) {
    if (model) note_use(model->id);
    return then(std::move(model));
  }
  const auto offered = this->offered();
  const auto* wanted = pick(offered, name);
  if (wanted == nullptr) return then(std::unexpected(not_found(name, offered)));
  if (model = models_.find(wanted->id); model) {  // by another name of it
    note_use(wanted->id);
    return then(std::move(model));
  }
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = waiting_[wanted->id];
    if (waiting.size() < kMostWaiting) {
      waiting.push_back({std::move(asker), std::move(then)});
      if (waiting.size() == 1) slow_.post([this, model = *wanted] { load_for_waiters(model); });
      // Under this name the next requests find it without a look into the folder.
      if (!name.empty() && name != wanted->id) ids_[to_lower(name)] = wanted->id;
      return;
    }
  }
  then(std::unexpected(
      try_later(fmt::format("[models] {} requests wait for \"{}\" to be loaded, no more may", kMostWaiting, wanted->id),
                kRetryAfter_s)));
}

ApiResult<OfferedModel> OnDemand::find_offered(const std::string& name) const {
  const auto offered = this->offered();
  if (const auto* model = pick(offered, name)) return *model;
  return std::unexpected(not_found(name, offered));
}

std::vector<OfferedModel> OnDemand::not_loaded() const {
  auto offered = this->offered();
  const auto loaded = models_.list();
  std::erase_if(offered, [&](const auto& model) {
    return std::ranges::find(loaded, model.id, &ServedModel::id) != loaded.end();
  });
  return offered;
}

bool OnDemand::is_loading(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return waiting_.contains(id);
}

void OnDemand::load_for_waiters(const OfferedModel& wanted) {
  const auto take = [&] {
    const std::lock_guard lock(mutex_);
    auto node = waiting_.extract(wanted.id);
    return node ? std::move(node.mapped()) : std::vector<Waiter>{};
  };
  {
    const std::lock_guard lock(mutex_);
    const auto& waiting = waiting_[wanted.id];
    const auto has_left = [](const Waiter& waiter) { return waiter.asker.gone.stop_requested(); };
    if (std::ranges::all_of(waiting, has_left)) {  // nobody wants it any more
      waiting_.erase(wanted.id);
      return;
    }
  }
  const auto model = load(wanted);
  for (auto& waiter : take()) {
    const auto owner = waiter.asker.owner;
    work_.post(owner, [waiter = std::move(waiter), model] {
      if (!waiter.asker.gone.stop_requested()) waiter.then(model);
    });
  }
}

ApiResult<ServedModel> OnDemand::load(const OfferedModel& wanted) {
  if (auto there = models_.find(wanted.id)) return there;
  if (is_draining_) return std::unexpected(try_later("[server] the server is shutting down", kRetryAfter_s));
  const auto o = options();
  if (!o) return models_.find(wanted.id);  // the configuration has changed meanwhile: an error
  const auto begin = now_ms();
  forget_those_gone();
  ZRT_CHECK_OK(make_room(o->max_loaded));
  for (;;) {
    auto loaded = models_.load({wanted.path, wanted.id, o->engine}, LoadedBy::kRequest);
    if (loaded) break;
    constexpr int kNoMemory = 409;  // the id is free, as the search above has shown
    if (loaded.error().status == kNoMemory && unload_idlest()) continue;
    log().error("model {} was not loaded: {}", wanted.id, loaded.error().message);
    loaded.error().param = "model";
    return std::unexpected(std::move(loaded.error()));
  }
  log().info("model {} was loaded in {} ms, since a request named it", wanted.id, now_ms() - begin);
  const std::lock_guard lock(mutex_);
  uses_[wanted.id] = {now_ms(), false};
  return models_.find(wanted.id);
}

// Models that an admin has unloaded.
void OnDemand::forget_those_gone() {
  const auto loaded = models_.list();
  const std::lock_guard lock(mutex_);
  std::erase_if(
      uses_, [&](const auto& use) { return std::ranges::find(loaded, use.first, &ServedModel::id) == loaded.end(); });
}

ApiResult<void> OnDemand::make_room(std::uint32_t most) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (uses_.size() < most) return {};
    }
    if (!unload_idlest())
      return std::unexpected(
          try_later(fmt::format("[models] all {} models that may be loaded on demand are in use (max_loaded)", most),
                    kRetryAfter_s));
  }
}

bool OnDemand::unload_idlest() {
  const auto stats = engine_.stats();
  const auto loaded = models_.list();
  std::string idlest;
  {
    const std::lock_guard lock(mutex_);
    std::int64_t least = INT64_MAX;
    for (const auto& [id, use] : uses_) {
      const auto model = std::ranges::find(loaded, id, &ServedModel::id);
      if (model == loaded.end()) continue;
      const auto now = std::ranges::find(stats.models, model->engine_name, &ModelStats::name);
      if (now != stats.models.end() && now->running + now->waiting > 0) continue;
      if (use.last_ms < least) least = use.last_ms, idlest = id;
    }
  }
  if (idlest.empty()) return false;
  log().info("model {} makes room", idlest);
  return unload(idlest).has_value();
}

ApiResult<void> OnDemand::unload(const std::string& id) {
  auto done = models_.unload(id);
  if (!done && done.error().status != 404) {  // 404: an admin has unloaded it
    log().error("model {} was not unloaded: {}", id, done.error().message);
    return done;
  }
  const std::lock_guard lock(mutex_);
  uses_.erase(id);
  std::erase_if(ids_, [&](const auto& name) { return name.second == id; });
  return {};
}

void OnDemand::look(const EngineStats& stats) {
  std::map<std::string, bool> is_busy;  // by id
  for (const auto& model : models_.list()) {
    const auto now = std::ranges::find(stats.models, model.engine_name, &ModelStats::name);
    is_busy[model.id] = now != stats.models.end() && now->running + now->waiting > 0;
  }
  const std::lock_guard lock(mutex_);
  if (!options_ || options_->keep_alive_s < 0) return;
  for (auto& [id, use] : uses_) {
    if (is_busy[id]) use.last_ms = now_ms();
    if (is_busy[id] || use.is_leaving || idle_s(use) < options_->keep_alive_s) continue;
    use.is_leaving = true;
    slow_.post([this, id] { unload_if_idle(id); });
  }
}

void OnDemand::unload_if_idle(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = uses_.find(id);
    if (it == uses_.end() || !options_) return;
    it->second.is_leaving = false;
    if (idle_s(it->second) < options_->keep_alive_s) return;
  }
  if (unload(id)) log().info("model {} was unloaded, since nobody used it", id);
}

}  // namespace zinc_rt::server
