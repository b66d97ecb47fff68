#include "engine/options.h"

#include "base/error.h"
#include "base/options.h"

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
  out.on_progress = options.on_progress;
  out.fusion = options.fusion.empty() ? options::get("ZINC_RT_FUSION") : options.fusion;
  ZRT_TRY(out.threads, chosen_threads(options));
  ZRT_TRY(const auto chunk, options::get_int("ZINC_RT_CHUNK_CAP", 0, 1 << 20));
  out.chunk_cap = options.chunk_cap > 0 ? options.chunk_cap : static_cast<std::uint32_t>(chunk);
  out.cpu_kernels = options.cpu_kernels.empty() ? options::get("ZINC_RT_CPU_KERNELS") : options.cpu_kernels;
  return out;
}

Result<PrefillMode> parse_prefill_mode() {
  const auto text = options::get("ZINC_RT_BATCHED_PREFILL");
  if (text == "1") return PrefillMode::kBatched;
  if (text == "0") return PrefillMode::kTokenByToken;
  if (text == "validate") return PrefillMode::kValidate;
  return fail(StatusCode::kInvalidArgument, "[options] ZINC_RT_BATCHED_PREFILL={} is not one of 1, 0, validate", text);
}

}  // namespace zinc_rt
