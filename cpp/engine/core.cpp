#include "engine/core.h"

#include <algorithm>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "base/thread_pool.h"
#include "engine/clock.h"
#include "engine/options.h"

namespace zinc_rt {
namespace {

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options, int n_threads, bool may_be_empty, Drive drive)
    : max_models_(options.max_models),
      may_be_empty_(may_be_empty),
      n_threads_(n_threads),
      drive_(drive),
      key_{random_word(), random_word()},
      mask_maker_([this] { poke(); }, drive == Drive::kThreads ? MaskMaker::kThreads : 0),
      compiles_(drive == Drive::kThreads ? 2 : 0, 1, WorkQueue::Priority::kBehindSteps,
                {"grammars", std::chrono::seconds(30), 0.5}) {}

Result<std::shared_ptr<EngineCore>> EngineCore::open(const std::string& path, const EngineOptions& options,
                                                     Drive drive) {
  ZRT_TRY(auto model, Model::open(path, options));
  return start(std::move(model), drive);
}

std::shared_ptr<EngineCore> EngineCore::make(const EngineOptions& options, int n_threads, bool may_be_empty,
                                             Drive drive) {
  // A sink may own the last handle of the engine. Then one of the engine's own threads destroys the core. It cannot
  // wait for itself, so another thread has to do it.
  const auto destroy = [](EngineCore* core) {
    const bool is_own = core->drainer_.get_id() == std::this_thread::get_id() ||
                        std::ranges::any_of(core->loops(), [](const StepLoop* loop) { return loop->is_this_thread(); });
    if (is_own)
      std::thread([core] { delete core; }).detach();
    else
      delete core;
  };
  return {new EngineCore(options, n_threads, may_be_empty, drive), destroy};
}

void EngineCore::start_drainer() {
  if (drive_ == Drive::kPump) return output_.use([this] { take_events(); });
  drainer_ = std::thread([this] {
    name_thread("zrt-drain");
    run_drainer();
  });
}

Result<std::shared_ptr<EngineCore>> EngineCore::start(std::shared_ptr<Model> model, Drive drive) {
  const auto core = make(model->options(), model->n_threads(), false, drive);
  const std::string name = model->config().name.empty() ? "default" : model->config().name;
  ZRT_CHECK_OK(core->join(std::move(model), name));
  core->start_drainer();
  return core;
}

Result<std::shared_ptr<EngineCore>> EngineCore::start_empty(const EngineOptions& options) {
  ZRT_TRY(const auto chosen, with_environment(options));
  const auto core = make(options, threads_of(chosen), true, kUsualDrive);
  core->start_drainer();
  return core;
}

EngineCore::~EngineCore() {
  close();
}

Status EngineCore::check_open() const {
  if (is_closed()) return fail(StatusCode::kUnavailable, "[engine] the engine is closed");
  return {};
}

Status EngineCore::check_loaded(const Model& model, const Replica& replica) const {
  ZRT_CHECK_OK(check_open());
  if (!replica.is_loaded())
    return fail(StatusCode::kUnavailable, "[engine] model \"{}\" has been removed", model.name());
  return {};
}

Result<StepLoop*> EngineCore::loop_for(const DeviceId& device) {
  const std::lock_guard lock(loops_mutex_);
  ZRT_CHECK_OK(check_open());  // close() stops only the loops that exist when it runs
  for (const auto& loop : loops_)
    if (loop->device() == device) return loop.get();
  loops_.push_back(std::make_unique<StepLoop>(
      device, static_cast<std::uint32_t>(loops_.size()), n_threads_,
      StepLoop::Shared{output_, book_, timeline_, mask_maker_, drive_, [this](const StepLoop& from) { poke(&from); }}));
  return loops_.back().get();
}

std::vector<StepLoop*> EngineCore::loops() const {
  const std::lock_guard lock(loops_mutex_);
  std::vector<StepLoop*> list;
  for (const auto& loop : loops_) list.push_back(loop.get());
  return list;
}

void EngineCore::poke(const StepLoop* but) {
  const std::lock_guard lock(loops_mutex_);
  for (const auto& loop : loops_)
    if (loop.get() != but) loop->poke();
}

void EngineCore::close() {
  if (is_closed_.exchange(true)) return;
  const std::lock_guard pumping(pump_mutex_);
  const auto loops = this->loops();
  for (StepLoop* loop : loops) loop->stop();
  for (StepLoop* loop : loops) loop->join();
  mask_maker_.stop();
  compiles_.stop();
  output_.ring().close();
  if (drive_ == Drive::kPump)
    run_drainer();
  else if (drainer_.joinable())
    drainer_.join();
  const auto models = [&] {
    const std::lock_guard lock(names_mutex_);
    return models_;
  }();
  for (const auto& model : models) take_out(*model);
}

bool EngineCore::wait_idle(double timeout_ms, const std::function<bool()>& is_idle) {
  if (drive_ == Drive::kPump) return pump_until(timeout_ms, is_idle);
  std::unique_lock lock(idle_mutex_);
  if (timeout_ms < 0) return went_idle_.wait(lock, is_idle), true;
  return went_idle_.wait_for(lock, std::chrono::duration<double, std::milli>(timeout_ms), is_idle);
}

bool EngineCore::drain(double timeout_ms) {
  is_draining_.store(true);
  return wait_idle(std::max(0.0, timeout_ms), [&] { return n_open_.load() == 0; });
}

}  // namespace zinc_rt
