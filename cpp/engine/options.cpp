#include "engine/options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "base/thread_pool.h"

namespace zinc_rt {

namespace {

bool is_left_open(const EngineOptions& options, const EngineOption& row) {
  if (const auto* text = std::get_if<std::string EngineOptions::*>(&row.member)) return (options.**text).empty();
  if (const auto* number = std::get_if<std::uint32_t EngineOptions::*>(&row.member)) return options.**number == 0;
  return false;
}

}  // namespace

Result<EngineOptions> with_environment(EngineOptions options) {
  ZRT_CHECK_OK(check(options));
  // "auto" counts as not set, so that the environment variable decides.
  if (options.tier == "auto") options.tier.clear();
  for (const EngineOption& row : engine_options()) {
    if (*row.variable == '\0' || !is_left_open(options, row)) continue;
    const auto text = options::get(row.variable);
    if (text.empty()) continue;
    if (const auto set = set_option(options, row, text); !set)
      return fail({StatusCode::kInvalidArgument, row.name}, "[options] {}={}: {}", row.variable, text,
                  set.error().message);
  }
  return options;
}

int threads_of(const EngineOptions& options) {
  return options.threads > 0 ? static_cast<int>(options.threads) : usable_threads();
}

std::optional<Speculation> speculation_of(const EngineOptions& options) {
  return find_speculation(options.speculate.empty() ? "auto" : options.speculate);
}

Result<ExecutorOptions> executor_options(const EngineOptions& given) {
  ZRT_TRY(const auto options, with_environment(given));
  ExecutorOptions out;
  out.tier = options.tier;
  out.backend = options.backend;
  out.max_slots = options.max_slots;
  out.kv_pages = options.kv_pages;
  out.max_context = options.max_context;
  out.kv_type = find_kv_type(options.kv_dtype);
  out.pooling = find_pooling(options.pooling);
  out.activations = find_activations(options.activations).value_or(Activations::kInt8);
  out.arithmetic = find_arithmetic(options.arithmetic).value_or(Arithmetic::kExact);
  out.mmap = options.mmap;
  out.repack = options.repack;
  out.state_checkpoints = 2 * options.max_slots;
  // With "auto" a step rarely gains from more guesses of a slot, and each takes memory in all slots.
  constexpr std::uint32_t kStateGuesses = 8;
  if (const auto speculation = speculation_of(options))
    out.state_guesses = speculation->is_fixed ? speculation->most : std::min(speculation->most, kStateGuesses);
  out.on_progress = options.on_progress.call;
  out.fusion = options.fusion;
  out.threads = static_cast<int>(options.threads);
  out.chunk_cap = options.chunk_cap;
  out.run_ahead = options.run_ahead;
  out.cpu_kernels = options.cpu_kernels;
  out.step_log = options::get("ZINC_RT_STEP_LOG");
  ZRT_TRY(const auto hashes_all, options::get_int("ZINC_RT_STEP_LOG_LOGITS", 0, 1));
  out.step_log_logits = hashes_all == 1;
  return out;
}

Status check_devices(const std::vector<std::uint32_t>& devices) {
  if (devices.empty())
    return fail({StatusCode::kInvalidArgument, "devices"}, "[engine] devices is empty, at least 1 wanted");
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      return fail({StatusCode::kInvalidArgument, "devices"}, "[engine] devices {} has {} twice",
                  fmt::join(devices, ","), devices[i]);
  return {};
}

Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options) {
  ZRT_CHECK_OK(check_devices(options.devices));
  ZRT_TRY(const auto common, executor_options(options));
  const std::size_t n = options.devices.size();
  std::vector<ExecutorOptions> replicas(n, common);
  for (std::size_t i = 0; i < n; ++i) {
    replicas[i].device = options.devices[i];
    replicas[i].n_replicas = static_cast<std::uint32_t>(n);
    if (n == 1) break;
    // The replicas share the processor: each gets an equal part of the threads.
    const int threads = common.threads > 0 ? common.threads : usable_threads();
    replicas[i].threads = std::max(1, threads / static_cast<int>(n));
    if (common.on_progress)
      replicas[i].on_progress = [on_progress = common.on_progress, i, n](std::uint64_t done, std::uint64_t total) {
        on_progress(i * total + done, n * total);
      };
  }
  return replicas;
}

Result<PrefillMode> parse_prefill_mode() {
  const auto text = options::get("ZINC_RT_BATCHED_PREFILL");
  if (text == "1") return PrefillMode::kBatched;
  if (text == "0") return PrefillMode::kTokenByToken;
  if (text == "validate") return PrefillMode::kValidate;
  return fail(StatusCode::kInvalidArgument, "[options] ZINC_RT_BATCHED_PREFILL={} is not one of 1, 0, validate", text);
}

}  // namespace zinc_rt
