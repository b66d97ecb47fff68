#include "server/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "server/answers/model_answers.h"

namespace zinc_rt::server {

std::string Models::default_id(const std::string& path) {
  auto name = std::filesystem::path(path).filename();
  if (name.empty()) name = std::filesystem::path(path).parent_path().filename();
  return name.extension() == ".gguf" ? name.stem().string() : name.string();
}

void widen_queue(EngineOptions& options) {
  if (options.queue_cap == EngineOptions().queue_cap) options.queue_cap = kQueueCap;
}

std::string served_id(const ModelSpec& spec) {
  return spec.id.empty() ? Models::default_id(spec.path) : spec.id;
}

bool is_good_model_id(std::string_view id) {
  return !id.empty() && id.size() <= 256 && is_utf8(id) && !has_control_characters(id);
}

namespace {

// Returns a text that changes if the model's file is replaced by another file of the same name.
std::string source_of(const ModelSpec& spec) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(spec.path, ignored);
  const auto time = std::filesystem::last_write_time(spec.path, ignored).time_since_epoch().count();
  return fmt::format("{} {} {}", spec.path, size, time);
}

// Converts an error about a model file. With status 422 the file is invalid, so the field is "path".
ApiError of_model_file(const Error& wrong) {
  auto error = to_api_error(wrong, ErrorSource::kModelFile);
  if (error.status == 422) error.param = "path";
  return error;
}

}  // namespace

ServedModel Models::describe(const ModelSpec& spec, const std::string& engine_name, LoadedBy by) const {
  ServedModel model;
  model.id = served_id(spec);
  model.aliases = spec.aliases;
  model.engine_name = engine_name;
  model.path = spec.path;
  model.hold = std::make_shared<const char>();
  model.spec = spec;
  model.source = source_of(spec);
  model.loaded_by = by;
  model.queue_cap = spec.options.queue_cap;
  model.created_s = static_cast<std::int64_t>(std::time(nullptr));
  if (auto card = engine_.model_card(engine_name)) model.card = std::move(*card);
  if (auto memory = engine_.memory_plan(engine_name)) model.memory = std::move(*memory);
  model.max_context = model.memory.max_context;
  return model;
}

// Returns a name for the engine: the id, with a number if the id was used before. So the counters of two models are
// never mixed.
std::string Models::new_engine_name(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto n = ++n_loads_[id];
  return n == 1 ? id : fmt::format("{}#{}", id, n);
}

// Loads a model into the engine. Requests cannot find it yet.
Result<ServedModel> Models::open(const ModelSpec& spec, const std::string& id, LoadedBy by) {
  const auto name = new_engine_name(id);
  ZRT_CHECK_OK(engine_.add_model(spec.path, name, spec.options));
  return describe(spec, name, by);
}

namespace {

bool is_called(const ServedModel& model, const std::string& name) {
  return model.id == name || std::ranges::find(model.aliases, name) != model.aliases.end();
}

}  // namespace

std::string Models::taken(const ModelSpec& spec) const {
  const std::lock_guard lock(mutex_);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(models_, [&](const ServedModel& model) { return is_called(model, name); });
  };
  if (const auto id = served_id(spec); is_taken(id)) return id;
  const auto alias = std::ranges::find_if(spec.aliases, is_taken);
  return alias == spec.aliases.end() ? std::string() : *alias;
}

ApiResult<void> Models::load(const ModelSpec& spec, LoadedBy by) {
  const auto id = served_id(spec);
  if (const auto name = taken(spec); !name.empty())
    return std::unexpected(make_error(409, fmt::format("[models] \"{}\" is loaded already", name), "id"));
  auto model = open(spec, id, by);
  if (!model) return std::unexpected(of_model_file(model.error()));
  const std::lock_guard lock(mutex_);
  models_.push_back(std::move(*model));
  return {};
}

Status Models::load_at_start(const ModelSpec& spec) {
  const auto id = served_id(spec);
  if (const auto name = taken(spec); !name.empty())
    return fail(StatusCode::kInvalidArgument, "[models] two models have the id \"{}\"", name);
  ZRT_TRY(auto model, open(spec, id, LoadedBy::kConfiguration));
  const std::lock_guard lock(mutex_);
  models_.push_back(std::move(model));
  return {};
}

Status Models::remove(ServedModel& model) {
  const std::weak_ptr held = model.hold;
  model.hold.reset();
  // Waits for requests that have found the model and are about to submit to it. That takes about as long as tokenizing
  // a prompt.
  while (!held.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return engine_.remove_model(model.engine_name);  // waits until the model's requests have ended
}

// Loads a changed model again. The new model takes the place of the old one in the list before the old one is removed,
// so that every request finds a model.
ApiResult<void> Models::replace(const ModelSpec& spec, const std::string& id) {
  auto model = open(spec, id, LoadedBy::kConfiguration);
  if (!model) return std::unexpected(of_model_file(model.error()));
  {
    const std::lock_guard lock(mutex_);
    forget_template(id);
    const auto former = std::ranges::find(models_, id, &ServedModel::id);
    if (former == models_.end()) {  // the old model was unloaded meanwhile
      models_.push_back(std::move(*model));
      return {};
    }
    std::swap(*former, *model);
  }
  if (const auto status = remove(*model); !status) return std::unexpected(to_api_error(status.error()));
  return {};
}

void Models::reconfigure(const std::vector<ModelSpec>& specs) {
  const auto before = list();
  bool all_loaded = true;
  const auto tell = [&](const char* what, const std::string& id, const ApiResult<void>& done) {
    all_loaded &= done.has_value();
    if (done)
      log().info("model {} was {}", id, what);
    else
      log().error("model {} was not {}: {}", id, what, done.error().message);
  };
  for (const auto& spec : specs) {
    const auto id = served_id(spec);
    const auto former = std::ranges::find(before, id, &ServedModel::id);
    if (former == before.end())
      tell("loaded", id, load(spec, LoadedBy::kConfiguration));
    else if (former->spec != spec || former->source != source_of(spec))
      tell("replaced", id, replace(spec, id));
  }
  const bool may_remove = all_loaded;
  for (const auto& model : before) {
    if (model.loaded_by != LoadedBy::kConfiguration || std::ranges::find(specs, model.id, served_id) != specs.end())
      continue;
    if (may_remove)
      tell("unloaded", model.id, unload(model.id));
    else
      log().warn("model {} stays, though the configuration no longer names it: what it names was not loaded", model.id);
  }
}

ApiResult<void> Models::unload(const std::string& id) {
  auto model = find(id);
  if (!model) return std::unexpected(model.error());
  std::ptrdiff_t place = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = std::ranges::find(models_, model->engine_name, &ServedModel::engine_name);
    if (it == models_.end()) return std::unexpected(not_found(id));  // another thread has removed it meanwhile
    place = it - models_.begin();
    models_.erase(it);
    forget_template(model->id);
  }
  const auto status = remove(*model);
  if (status) return {};
  model->hold = std::make_shared<const char>();
  const std::lock_guard lock(mutex_);
  models_.insert(models_.begin() + std::min<std::ptrdiff_t>(place, std::ssize(models_)), std::move(*model));
  return std::unexpected(to_api_error(status.error()));
}

ApiError Models::not_found(const std::string& name) const {
  std::string ids;
  for (const auto& model : models_) ids += (ids.empty() ? "" : ", ") + model.id;
  auto error = make_error(
      404,
      ids.empty() ? "[models] no model is loaded"
                  : fmt::format("[models] there is no model \"{}\"; these are served: {}", name.substr(0, 200), ids),
      "model");
  error.code = "model_not_found";
  return error;
}

ApiResult<ServedModel> Models::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& model : models_)
    if (name.empty() ? model.loaded_by != LoadedBy::kRequest : is_called(model, name) || model.engine_name == name)
      return model;
  return std::unexpected(not_found(name));
}

void Models::note_bad_logits(const std::string& engine_name, std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  for (auto& model : models_)
    if (model.engine_name == engine_name) model.n_bad_logits = n;
}

std::vector<std::string> Models::with_bad_logits() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& model : models_)
    if (model.n_bad_logits > 0) ids.push_back(model.id);
  return ids;
}

std::vector<ServedModel> Models::list() const {
  const std::lock_guard lock(mutex_);
  auto models = models_;
  for (auto& model : models) model.hold.reset();
  return models;
}

void Models::forget_template(const std::string& id) {
  std::erase_if(reads_tools_, [&](const auto& one) { return one.first.first == id; });
}

bool Models::reads_tools(const ServedModel& model, const std::string& template_kwargs) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = reads_tools_.find({model.id, template_kwargs});
    if (it != reads_tools_.end()) return it->second;
  }
  const bool found = server::reads_tools(engine_, model.engine_name, template_kwargs);
  const std::lock_guard lock(mutex_);
  if (reads_tools_.size() < kMostKnown) reads_tools_[{model.id, template_kwargs}] = found;
  return found;
}

}  // namespace zinc_rt::server
