#include "server/models/on_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/log.h"
#include "base/near_name.h"
#include "base/steady_ms.h"

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

bool is_ours(const ServedModel& model) {
  return model.loaded_by == LoadedBy::kRequest;
}

}  // namespace

void OnDemand::set(std::optional<OnDemandOptions> options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
}

bool OnDemand::is_idle(const Use& use) const {
  if (!options_) return true;
  const double idle_s = 1e-3 * static_cast<double>(steady_ms() - use.last_ms);
  return use.is_released || (options_->keep_alive_s >= 0 && idle_s >= options_->keep_alive_s);
}

std::optional<OnDemandOptions> OnDemand::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

// Returns the models that may be loaded. This may read a folder, so the caller should hold no lock.
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
  auto error =
      make_error(404,
                 ids.empty()    ? "[models] there is no model in the models folder; `zinc-rt pull NAME` fetches one"
                 : name.empty() ? fmt::format("[models] no model is named, and there are several: {}", all)
                                : fmt::format("[models] there is no model \"{}\"{}; these are served: {}",
                                              name.substr(0, 200), did_you_mean(name, ids), all),
                 "model");
  error.code = "model_not_found";
  return error;
}

// Returns a loaded model, found by its id or by another name by which it was requested before.
ApiResult<ServedModel> OnDemand::find_loaded(const std::string& name, const std::string& owner) {
  auto model = models_.find(name);
  const std::lock_guard lock(mutex_);
  if (!model)
    if (const auto it = ids_.find(to_lower(name)); it != ids_.end()) model = models_.find(it->second);
  if (model && is_ours(*model)) {
    Use& use = uses_[model->id];
    use.last_ms = use.by_owner[owner] = steady_ms();
    use.is_released = false;
  }
  return model;
}

void OnDemand::find(const std::string& name, Asker asker, Then then) {
  if (auto model = find_loaded(name, asker.owner); model || !options()) return then(std::move(model));
  const auto offered = this->offered();
  const auto* wanted = pick(offered, name);
  if (wanted == nullptr) return then(std::unexpected(not_found(name, offered)));
  if (!name.empty() && name != wanted->id) {
    // Remembers the name, so that later requests with it need not read the folder.
    const std::lock_guard lock(mutex_);
    ids_[to_lower(name)] = wanted->id;
  }
  if (auto model = find_loaded(wanted->id, asker.owner)) return then(std::move(model));
  std::optional<ApiError> refused;
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = waiting_[wanted->id];
    // The load counts against the tenant of the first request that waits.
    const auto paid = waiting.empty() && asker.payer ? asker.payer->take_load() : ApiResult<void>{};
    if (paid && waiting.size() < kMostWaiting) {
      const auto owner = asker.owner;
      waiting.push_back({std::move(asker), std::move(then)});
      if (waiting.size() == 1) slow_.post(owner, [this, model = *wanted] { load_for_waiters(model); });
      return;
    }
    if (waiting.empty()) waiting_.erase(wanted->id);
    if (!paid) refused = paid.error();
  }
  if (refused) return then(std::unexpected(*std::move(refused)));
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
  Asker asker;
  {
    const std::lock_guard lock(mutex_);
    const auto& waiting = waiting_[wanted.id];
    const auto is_there = [](const Waiter& waiter) { return !waiter.asker.gone.stop_requested(); };
    const auto first = std::ranges::find_if(waiting, is_there);
    if (first == waiting.end()) {  // all waiting clients have disconnected
      waiting_.erase(wanted.id);
      return;
    }
    // The stricter rules for batch lines apply only if no other kind of request waits for the model.
    const auto eager = std::ranges::find_if(
        waiting, [&](const Waiter& waiter) { return is_there(waiter) && !waiter.asker.is_of_batch; });
    asker = (eager == waiting.end() ? first : eager)->asker;
  }
  const auto model = load(wanted, asker);
  for (auto& waiter : take()) {
    if (model) {
      const std::lock_guard lock(mutex_);
      uses_[wanted.id].by_owner[waiter.asker.owner] = steady_ms();
    }
    const auto owner = waiter.asker.owner;
    work_.post(owner, [waiter = std::move(waiter), model] {
      if (!waiter.asker.gone.stop_requested()) waiter.then(model);
    });
  }
}

ApiResult<ServedModel> OnDemand::load(const OfferedModel& wanted, const Asker& asker) {
  if (auto there = models_.find(wanted.id)) return there;
  if (is_draining_) return std::unexpected(shutting_down());
  const auto o = options();
  if (!o) return models_.find(wanted.id);  // the configuration has changed, so that this returns find()'s error
  const auto begin = steady_ms();
  ZRT_CHECK_OK(make_room(o->max_loaded, asker));
  for (;;) {
    auto loaded = models_.load({wanted.path, wanted.id, {}, o->engine}, LoadedBy::kRequest);
    if (loaded) break;
    constexpr int kNoMemory = 409;  // it cannot mean "id taken" here, because find() above did not find the id
    if (loaded.error().status == kNoMemory && unload_idlest(asker)) continue;
    log().error("model {} was not loaded: {}", wanted.id, loaded.error().message);
    loaded.error().param = "model";
    return std::unexpected(std::move(loaded.error()));
  }
  log().info("model {} was loaded in {} ms, since a request named it", wanted.id, steady_ms() - begin);
  const std::lock_guard lock(mutex_);
  uses_[wanted.id] = {.last_ms = steady_ms(), .by_owner = {{asker.owner, steady_ms()}}};
  return models_.find(wanted.id);
}

ApiResult<void> OnDemand::make_room(std::uint32_t most, const Asker& asker) {
  while (std::cmp_greater_equal(std::ranges::count_if(models_.list(), is_ours), most))
    if (!unload_idlest(asker))
      return std::unexpected(try_later(
          fmt::format("[models] all {} models that may be loaded on demand are in use (max_loaded), or were used "
                      "by others in the last {} s",
                      most, kLatelyMs / 1000)));
  return {};
}

std::string OnDemand::idlest_for(const Asker& asker, const std::vector<ServedModel>& loaded, const EngineStats& stats) {
  const auto now = steady_ms();
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> n_held;  // how many models each owner has used lately
  for (const auto& model : loaded) {
    if (!is_ours(model)) continue;
    Use& use = uses_[model.id];
    std::erase_if(use.by_owner, [&](const auto& one) { return now - one.second > kLatelyMs; });
    if (now - use.last_ms > kLatelyMs) use.by_owner.clear();  // nobody holds the model any more
    for (const auto& [owner, when] : use.by_owner) ++n_held[owner];
  }
  const int mine = n_held[asker.owner];
  const ServedModel* best = nullptr;
  const auto rank = [&](const ServedModel& model) {
    const Use& use = uses_[model.id];
    return std::pair(use.by_owner.size() > use.by_owner.count(asker.owner), use.last_ms);
  };
  for (const auto& model : loaded) {
    if (!is_ours(model) || is_busy(model, stats)) continue;
    const bool makes_room = std::ranges::all_of(uses_[model.id].by_owner, [&](const auto& one) {
      return one.first == asker.owner || (!asker.is_of_batch && n_held[one.first] > mine + 1);
    });
    if (makes_room && (best == nullptr || rank(model) < rank(*best))) best = &model;
  }
  return best == nullptr ? std::string() : best->id;
}

bool OnDemand::unload_idlest(const Asker& asker) {
  const auto stats = engine_.stats();
  const auto loaded = models_.list();
  const auto idlest = idlest_for(asker, loaded, stats);
  if (idlest.empty()) return false;
  log().info("model {} makes room", idlest);
  return unload(idlest).has_value();
}

ApiResult<void> OnDemand::unload(const std::string& id) {
  auto done = models_.unload(id);
  if (!done && done.error().status != 404) {  // 404: an admin has unloaded it already
    log().error("model {} was not unloaded: {}", id, done.error().message);
    return done;
  }
  const std::lock_guard lock(mutex_);
  uses_.erase(id);
  std::erase_if(ids_, [&](const auto& name) { return name.second == id; });
  return {};
}

void OnDemand::look(const EngineStats& stats) {
  const auto loaded = models_.list();
  const std::lock_guard lock(mutex_);
  for (const auto& model : loaded) {
    if (!is_ours(model)) continue;
    auto& use = uses_[model.id];
    if (is_busy(model, stats)) {
      // The owners' requests may still be running, so this moment counts as their last use.
      for (auto& [owner, when] : use.by_owner)
        if (use.last_ms - when < kLatelyMs) when = steady_ms();
      use.last_ms = steady_ms();
    }
    if (is_busy(model, stats) || use.is_leaving || !is_idle(use)) continue;
    use.is_leaving = true;
    slow_.post([this, id = model.id] { unload_if_idle(id); });
  }
}

void OnDemand::release(const std::string& id) {
  const auto model = models_.find(id);
  if (!model || !is_ours(*model) || is_busy(*model, engine_.stats())) return;
  const std::lock_guard lock(mutex_);
  uses_[id] = {.is_leaving = true, .is_released = true};
  slow_.post([this, id] { unload_if_idle(id); });
}

void OnDemand::unload_if_idle(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = uses_.find(id);
    if (it == uses_.end()) return;
    it->second.is_leaving = false;
    if (!is_idle(it->second)) return;
  }
  if (unload(id)) log().info("model {} was unloaded, since nobody used it", id);
}

}  // namespace zinc_rt::server
