#include "server/on_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/log.h"
#include "base/near_name.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

ApiError try_later(std::string message) {
  auto error = make_error(503, std::move(message), "model");
  error.retry_after_s = 5;
  return error;
}

bool is_busy(const ServedModel& model, const EngineStats& stats) {
  const auto now = std::ranges::find(stats.models, model.engine_name, &ModelStats::name);
  return now != stats.models.end() && now->running + now->waiting > 0;
}

// How long a model that was given back counts as idle: longer than any that is kept.
constexpr std::int64_t kLongAgoMs = std::int64_t{1} << 60;

bool is_ours(const ServedModel& model) {
  return model.loaded_by == LoadedBy::kRequest;
}

}  // namespace

void OnDemand::set(std::optional<OnDemandOptions> options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
}

double OnDemand::idle_s(const Use& use) {
  return 1e-3 * static_cast<double>(steady_ms() - use.last_ms);
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
  auto error = make_error(404, {}, "model");
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

// A loaded model by its id, or by another name under which it was asked for before.
ApiResult<ServedModel> OnDemand::find_loaded(const std::string& name) {
  auto model = models_.find(name);
  const std::lock_guard lock(mutex_);
  if (!model)
    if (const auto it = ids_.find(to_lower(name)); it != ids_.end()) model = models_.find(it->second);
  if (model && is_ours(*model)) uses_[model->id].last_ms = steady_ms();
  return model;
}

void OnDemand::find(const std::string& name, Asker asker, Then then) {
  if (auto model = find_loaded(name); model || !options()) return then(std::move(model));
  const auto offered = this->offered();
  const auto* wanted = pick(offered, name);
  if (wanted == nullptr) return then(std::unexpected(not_found(name, offered)));
  if (!name.empty() && name != wanted->id) {
    // Under this name the next requests find it without a look into the folder.
    const std::lock_guard lock(mutex_);
    ids_[to_lower(name)] = wanted->id;
  }
  if (auto model = find_loaded(wanted->id)) return then(std::move(model));
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = waiting_[wanted->id];
    if (waiting.size() < kMostWaiting) {
      waiting.push_back({std::move(asker), std::move(then)});
      if (waiting.size() == 1) slow_.post([this, model = *wanted] { load_for_waiters(model); });
      return;
    }
  }
  then(std::unexpected(try_later(
      fmt::format("[models] {} requests wait for \"{}\" to be loaded, no more may", kMostWaiting, wanted->id))));
}

ApiResult<OfferedModel> OnDemand::find_offered(const std::string& name) const {
  if (!options()) return std::unexpected(models_.find(name).error());
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
  if (is_draining_) return std::unexpected(shutting_down());
  const auto o = options();
  if (!o) return models_.find(wanted.id);  // the configuration has changed meanwhile: an error
  const auto begin = steady_ms();
  ZRT_CHECK_OK(make_room(o->max_loaded));
  for (;;) {
    auto loaded = models_.load({wanted.path, wanted.id, {}, o->engine}, LoadedBy::kRequest);
    if (loaded) break;
    constexpr int kNoMemory = 409;  // the id is free, as the search above has shown
    if (loaded.error().status == kNoMemory && unload_idlest()) continue;
    log().error("model {} was not loaded: {}", wanted.id, loaded.error().message);
    loaded.error().param = "model";
    return std::unexpected(std::move(loaded.error()));
  }
  log().info("model {} was loaded in {} ms, since a request named it", wanted.id, steady_ms() - begin);
  const std::lock_guard lock(mutex_);
  uses_[wanted.id] = {steady_ms(), false};
  return models_.find(wanted.id);
}

ApiResult<void> OnDemand::make_room(std::uint32_t most) {
  while (std::cmp_greater_equal(std::ranges::count_if(models_.list(), is_ours), most))
    if (!unload_idlest())
      return std::unexpected(
          try_later(fmt::format("[models] all {} models that may be loaded on demand are in use (max_loaded)", most)));
  return {};
}

bool OnDemand::unload_idlest() {
  const auto stats = engine_.stats();
  std::string idlest;
  {
    const auto loaded = models_.list();
    const std::lock_guard lock(mutex_);
    std::int64_t least = INT64_MAX;
    for (const auto& model : loaded) {
      if (!is_ours(model) || is_busy(model, stats)) continue;
      if (const auto last = uses_[model.id].last_ms; last < least) least = last, idlest = model.id;
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
  if (const auto o = options(); !o || o->keep_alive_s < 0) return;
  const auto loaded = models_.list();
  const std::lock_guard lock(mutex_);
  for (const auto& model : loaded) {
    if (!is_ours(model)) continue;
    auto& use = uses_[model.id];
    if (is_busy(model, stats)) use.last_ms = steady_ms();
    if (is_busy(model, stats) || use.is_leaving || !options_ || idle_s(use) < options_->keep_alive_s) continue;
    use.is_leaving = true;
    slow_.post([this, id = model.id] { unload_if_idle(id); });
  }
}

void OnDemand::release(const std::string& id) {
  const auto model = models_.find(id);
  if (!model || !is_ours(*model) || is_busy(*model, engine_.stats())) return;
  const std::lock_guard lock(mutex_);
  uses_[id] = {steady_ms() - kLongAgoMs, true};
  slow_.post([this, id] { unload_if_idle(id); });
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
