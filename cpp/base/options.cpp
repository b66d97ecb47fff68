#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace zinc_rt::options {
namespace {

constexpr Variable kVariables[] = {
    {"ZINC_RT_TIER", "auto",
     "hardware tier: auto, t1, t2, t_cpu, t_metal, t_intel, t_cuda or null; a forced tier that is absent is an error"},
    {"ZINC_RT_ARITH", "exact",
     "exact: the same bits on every tier and in every batch; fast: a tier may use any order where it has such kernels"},
    {"ZINC_RT_CPU_KERNELS", "auto", "kernel set of T-CPU: auto, or a name that zinc-rt tiers gives; same bits"},
    {"ZINC_RT_CPU_WORKERS", "0", "threads of T-CPU; 0: what the process may use"},
    {"ZINC_RT_CHUNK_CAP", "0",
     "most prompt tokens in one step; 0: the tier's default (256 on T-CPU). Changes no result in exact arithmetic"},
    {"ZINC_RT_BATCHED_PREFILL", "1",
     "1: prompts in chunks; 0: token by token; validate: both ways, reports the largest difference of the logits"},
    {"ZINC_RT_FUSION", "1",
     "1: all fused kernels; 0: none; or a list of qkv, gate_up, rope_kv, residual. Never changes a result"},
    {"ZINC_RT_API_KEY", "", "zinc-rt serve: the one key of the tenant \"default\"; empty: none"},
    {"ZINC_RT_ADMIN_KEY", "", "zinc-rt serve: the key for tenants, metrics and loading models; empty: none"},
    {"ZINC_RT_STATE", "",
     "zinc-rt serve: file of the usage ledger, or none; empty: zinc_rt/state.db in XDG_STATE_HOME or ~/.local/state"},
    {"ZINC_RT_LOG", "warn", "log level on stderr: trace, debug, info, warn, error or off"},
    {"ZINC_RT_LOG_FORMAT", "text", "text, or json: an object a line"},
};

const Variable& find(std::string_view name) {
  return *std::ranges::find(kVariables, name, &Variable::name);
}

}  // namespace

std::span<const Variable> variables() {
  return kVariables;
}

bool is_set(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr && *value != '\0';
}

std::string get(std::string_view name) {
  return is_set(name) ? std::getenv(std::string(name).c_str()) : std::string(find(name).fallback);
}

std::string state_folder() {
  const auto of = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto folder = of("XDG_STATE_HOME"); !folder.empty()) return folder + "/zinc_rt";
  const auto home = of("HOME");
  return home.empty() ? "" : home + "/.local/state/zinc_rt";
}

Result<std::int64_t> get_int(std::string_view name, std::int64_t low, std::int64_t high) {
  const std::string text = get(name);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return fail(StatusCode::kInvalidArgument, "[options] {}={} is not a number from {} to {}", name, text, low, high);
  return value;
}

}  // namespace zinc_rt::options
