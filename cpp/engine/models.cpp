// EngineCore's calls that add, find and remove models.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "engine/clock.h"
#include "engine/core.h"

namespace zinc_rt {

std::shared_ptr<Model> EngineCore::find_model(const std::string& name) const {
  const std::lock_guard lock(names_mutex_);
  if (name.empty()) return models_.empty() ? nullptr : models_.front();
  for (const auto& model : models_)
    if (model->name() == name) return model;
  return nullptr;
}

Result<std::shared_ptr<Model>> EngineCore::known_model(const std::string& name) const {
  if (auto found = find_model(name)) return found;
  const auto names = model_names();
  if (names.empty()) return fail(StatusCode::kNotFound, "[engine] no model is loaded");
  return fail(StatusCode::kNotFound, "[engine] no model \"{}\" is loaded; there are: {}", name, fmt::join(names, ", "));
}

Result<std::shared_ptr<Model>> EngineCore::model(const std::string& name) const {
  ZRT_CHECK_OK(check_open());
  return known_model(name);
}

std::vector<std::string> EngineCore::model_names() const {
  const std::lock_guard lock(names_mutex_);
  std::vector<std::string> names;
  for (const auto& model : models_) names.push_back(model->name());
  return names;
}

void EngineCore::take_out(Model& model) {
  for (const auto& replica : model.replicas()) {
    if (replica->has_no_loop()) continue;
    const StepLoop::Pause pause(replica->loop());
    replica->loop().remove(*replica);
    replica->unload(book_);
  }
}

// The step loops must know the model before clients can find its name, because requests may arrive at once.
Status EngineCore::join(std::shared_ptr<Model> model, std::string name) {
  ZRT_CHECK_OK(model->join(
      name, {book_, key_, timeline_, next_replica_id_, [this](const DeviceId& device) { return loop_for(device); }}));
  for (const auto& replica : model->replicas()) {
    const StepLoop::Pause pause(replica->loop());
    replica->loop().add(*replica);
  }
  const auto status = [&]() -> Status {
    const std::lock_guard lock(names_mutex_);
    ZRT_CHECK_OK(check_open());
    for (const auto& other : models_)
      if (other->name() == name)
        return fail(StatusCode::kInvalidArgument, "[engine] a model \"{}\" is loaded already", name);
    const auto book = book_.lock();
    ZRT_CHECK_OK(check_has_pages(*model, book_.total_reserved()));
    model->last_used.store(now_us());
    models_.push_back(model);
    return {};
  }();
  if (!status) take_out(*model);
  return status;
}

Status EngineCore::add_model(const std::string& path, const std::string& name, const EngineOptions& options) {
  if (name.empty() || name.size() > 256)
    return fail(StatusCode::kInvalidArgument, "[engine] a model name of {} bytes, 1 to 256 allowed", name.size());
  ZRT_CHECK_OK(check_open());
  std::string oldest;  // the idle model that was used longest ago
  std::size_t loaded = 0;
  {
    const std::lock_guard lock(names_mutex_);
    loaded = models_.size();
    sched::Micros used = sched::kNever;
    for (const auto& model : models_) {
      if (model->name() == name)
        return fail(StatusCode::kInvalidArgument, "[engine] a model \"{}\" is loaded already", name);
      if (model == models_.front() || model->n_open.load() > 0 || model->last_used.load() >= used) continue;
      used = model->last_used.load();
      oldest = model->name();
    }
  }
  if (max_models_ > 0 && loaded >= max_models_) {
    if (oldest.empty()) {
      auto error = fail(StatusCode::kExhausted, "[engine] {} models are loaded, {} allowed (max_models), none is idle",
                        loaded, max_models_);
      error.error().retry_after_s = 1;
      return error;
    }
    log().info("model {} makes room for {}: {} allowed (max_models)", oldest, name, max_models_);
    ZRT_CHECK_OK(remove_model(oldest));
  }
  ZRT_TRY(auto model, Model::open(path, options));
  return join(std::move(model), name);
}

Status EngineCore::remove_model(const std::string& name) {
  ZRT_TRY(const auto model, this->model(name));
  {
    const std::lock_guard lock(names_mutex_);
    if (models_.size() == 1 && !may_be_empty_)
      return fail(StatusCode::kInvalidArgument, "[engine] \"{}\" is the engine's only model; close the engine instead",
                  name);
    if (model->is_closing.exchange(true))
      return fail(StatusCode::kUnavailable, "[engine] \"{}\" is being removed", name);
  }
  // A request that was checked before is_closing was set may still reach a step loop. The step loop refuses the
  // request, because its replica is unloaded by then.
  for (const auto& replica : model->replicas()) {
    for (;;) {
      wait_idle(-1, [&] { return model->n_open.load() == 0; });
      const StepLoop::Pause pause(replica->loop());
      if (model->n_open.load() > 0) continue;
      replica->loop().remove(*replica);
      replica->unload(book_);
      break;
    }
  }
  const std::lock_guard lock(names_mutex_);
  std::erase(models_, model);
  return {};
}

}  // namespace zinc_rt
