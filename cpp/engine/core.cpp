#include "engine/core.h"

#include <random>

#include "base/error.h"
#include "base/log.h"
#include "base/this_thread.h"
#include "engine/clock.h"
#include "engine/options.h"

namespace zinc_rt {
namespace {

// Waking more threads costs more than they save for the 64 rows of a step.
constexpr int kMostRowThreads = 16;

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options, int n_threads, bool may_be_empty)
    : max_models_(options.max_models),
      may_be_empty_(may_be_empty),
      key_{random_word(), random_word()},
      row_threads_(std::make_unique<ThreadPool>(std::min(n_threads, kMostRowThreads))) {
  inbox_.reserve(64);
  taken_.reserve(64);
}

Result<std::shared_ptr<EngineCore>> EngineCore::open(const std::string& path, const EngineOptions& options) {
  ZRT_TRY(auto model, Model::open(path, options));
  return start(std::move(model));
}

std::shared_ptr<EngineCore> EngineCore::make(const EngineOptions& options, int n_threads, bool may_be_empty) {
  // A sink may own the last handle. Then one of the engine's own threads destroys the core, and it cannot wait for
  // itself.
  const auto destroy = [](EngineCore* core) {
    const auto here = std::this_thread::get_id();
    if (core->steps_.get_id() == here || core->drainer_.get_id() == here)
      std::thread([core] { delete core; }).detach();
    else
      delete core;
  };
  return {new EngineCore(options, n_threads, may_be_empty), destroy};
}

void EngineCore::start_threads() {
  steps_ = std::thread([this] {
    name_thread("zrt-step");
    run_steps();
  });
  drainer_ = std::thread([this] {
    name_thread("zrt-drain");
    run_drainer();
  });
}

Result<std::shared_ptr<EngineCore>> EngineCore::start(std::shared_ptr<Model> model) {
  const auto core = make(model->options(), model->n_threads(), false);
  const std::string name = model->config().name.empty() ? "default" : model->config().name;
  ZRT_CHECK_OK(core->join(std::move(model), name));
  core->start_threads();
  return core;
}

Result<std::shared_ptr<EngineCore>> EngineCore::start_empty(const EngineOptions& options) {
  ZRT_TRY(const auto threads, chosen_threads(options));
  const auto core = make(options, threads > 0 ? threads : usable_threads(), true);
  core->start_threads();
  return core;
}

EngineCore::~EngineCore() {
  close();
}

Status EngineCore::check_open() const {
  if (is_closed()) return fail(StatusCode::kUnavailable, "[engine] the engine is closed");
  return {};
}

Status EngineCore::check_loaded(const Model& model) const {
  ZRT_CHECK_OK(check_open());
  if (!model.is_loaded()) return fail(StatusCode::kUnavailable, "[engine] model \"{}\" has been removed", model.name());
  return {};
}

void EngineCore::close() {
  const bool was_closed = is_closed_.exchange(true);
  {
    const std::lock_guard lock(inbox_mutex_);
    stop_ = true;
  }
  inbox_filled_.notify_all();
  if (was_closed) return;
  if (steps_.joinable()) steps_.join();  // it did not start if the first model could not join
  output_.close();
  if (drainer_.joinable()) drainer_.join();
  const Turn::Guard guard(turn_);
  for (const auto& model : models_) model->unload();
}

bool EngineCore::drain(double timeout_ms) {
  is_draining_.store(true);
  std::unique_lock lock(inbox_mutex_);
  return went_idle_.wait_for(lock, std::chrono::duration<double, std::milli>(std::max(0.0, timeout_ms)),
                             [&] { return n_open_.load() == 0; });
}

}  // namespace zinc_rt
