#include "server/batches/offline_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>

#include "base/error.h"
#include "server/core.h"
#include "server/server.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kErrorsShown = 10;
constexpr std::chrono::milliseconds kShow{200};

Result<std::uint64_t> count_lines(const std::string& input) {
  ZRT_TRY(const auto check, check_batch_file(input, ""));
  if (check.errors.empty()) return check.n_lines;
  std::string text;
  for (std::size_t i = 0; i < std::min(kErrorsShown, check.errors.size()); ++i)
    text += "\n  " + check.errors[i].message;
  if (check.errors.size() > kErrorsShown) text += "\n  and more";
  return fail(StatusCode::kInvalidArgument, "[batch] {} cannot be run:{}", input, text);
}

// Returns whether the device fails every step, so that no line can be run.
bool is_device_lost(const Engine& engine) {
  constexpr std::uint64_t kMostFailures = 3;
  const auto stats = engine.stats();
  return std::ranges::any_of(stats.models,
                             [](const auto& model) { return model.failed_steps_in_a_row >= kMostFailures; });
}

Result<OfflineResult> run_lines(ServerCore& core, const Router& router, const OfflineBatch& batch,
                                std::uint64_t total) {
  std::mutex mutex;
  std::condition_variable came;
  bool has_come = false;
  BatchRun::Plan plan{batch.input, batch.output, batch.errors, "", core.tenants.find("default"), nullptr, [&] {
                        const std::lock_guard lock(mutex);
                        has_come = true;
                        came.notify_one();
                      }};
  ZRT_TRY(const auto run, BatchRun::open(core, router, std::move(plan)));
  OfflineResult result;
  result.total = total;
  result.before = run->counts();
  auto looked_ms = steady_ms();
  for (;;) {
    // No watching thread runs here, so this loop updates the time of the last sign of life.
    core.last_alive_ms = steady_ms();
    if (run->step()) break;
    if (steady_ms() > looked_ms + ServerCore::kWatchMs) {
      looked_ms = steady_ms();
      if (is_device_lost(core.engine)) return fail(StatusCode::kInternal, "[batch] the device fails every step");
    }
    batch.show(run->counts(), total);
    std::unique_lock lock(mutex);
    came.wait_for(lock, kShow, [&] { return has_come; });
    has_come = false;
  }
  ZRT_CHECK_OK(run->sync());
  result.counts = run->counts();
  return result;
}

}  // namespace

Result<OfflineResult> run_batch_offline(const OfflineBatch& batch) {
  ZRT_TRY(const auto total, count_lines(batch.input));
  ZRT_TRY(auto engine, Engine::start(batch.model.options));
  ZRT_TRY(auto store, StateStore::open(""));
  ServerCore core(std::move(engine), std::move(store), kVersion);
  core.max_answer_bytes = ServerOptions().max_answer_bytes;
  Router router;
  add_generation_routes(router, core);
  add_embedding_routes(router, core);
  auto result = [&]() -> Result<OfflineResult> {
    ZRT_CHECK_OK(core.models.load_at_start(batch.model));
    ZRT_CHECK_OK(core.tenants.configure({}, {}));
    return run_lines(core, router, batch, total);
  }();
  const auto closed = core.close();
  if (result && !closed) return std::unexpected(closed.error());
  return result;
}

}  // namespace zinc_rt::server
