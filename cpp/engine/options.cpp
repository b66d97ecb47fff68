#include "engine/options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "base/thread_pool.h"

namespace zinc_rt {

Result<int> chosen_threads(const EngineOptions& options) {
  ZRT_TRY(const auto threads, options::get_int("ZINC_RT_CPU_WORKERS", 0, 1024));
  if (options.threads < 0 || options.threads > 1024)
    return fail(StatusCode::kInvalidArgument, "[engine] threads is {}, 0 to 1024 allowed", options.threads);
  return options.threads > 0 ? options.threads : static_cast<int>(threads);
}

Result<ExecutorOptions> executor_options(const EngineOptions& options) {
  ExecutorOptions out;
  out.tier = options.tier.empty() || options.tier == "auto" ? options::get("ZINC_RT_TIER") : options.tier;
  out.backend = options.backend.empty() ? options::get("ZINC_RT_BACKEND") : options.backend;
  out.max_slots = options.max_slots;
  out.kv_pages = options.kv_pages;
  out.max_context = options.max_context;
  out.kv_dtype = options.kv_dtype;
  out.pooling = options.pooling;
  out.activations = options.activations;
  out.arithmetic = options.arithmetic.empty() ? options::get("ZINC_RT_ARITH") : options.arithmetic;
  if (out.arithmetic != "exact" && out.arithmetic != "fast")
    return fail(StatusCode::kInvalidArgument, "[engine] arithmetic \"{}\" is not one of exact, fast", out.arithmetic);
  out.mmap = options.mmap;
  out.repack = options.repack;
  out.state_checkpoints = 2 * options.max_slots;
  out.on_progress = options.on_progress.call;
  out.fusion = options.fusion.empty() ? options::get("ZINC_RT_FUSION") : options.fusion;
  ZRT_TRY(out.threads, chosen_threads(options));
  ZRT_TRY(const auto chunk, options::get_int("ZINC_RT_CHUNK_CAP", 0, 1 << 20));
  out.chunk_cap = options.chunk_cap > 0 ? options.chunk_cap : static_cast<std::uint32_t>(chunk);
  out.cpu_kernels = options.cpu_kernels.empty() ? options::get("ZINC_RT_CPU_KERNELS") : options.cpu_kernels;
  return out;
}

Status check_devices(const std::vector<std::uint32_t>& devices) {
  if (devices.empty()) return fail(StatusCode::kInvalidArgument, "[engine] devices is empty, at least 1 wanted");
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(StatusCode::kInvalidArgument, "[engine] devices {} has {} twice", fmt::join(devices, ","),
                  devices[i]);
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
    // Replicas share the processor: each has its part of the threads.
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
