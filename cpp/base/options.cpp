#include "base/options.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/read_number.h"

namespace zinc_rt::options {
namespace {

constexpr Variable kVariables[] = {
    {"ZINC_RT_TIER", "auto",
     "hardware tier: auto, t1, t2, t_cpu, t_metal, t_intel, t_cuda, vulkan or null; one that is absent is an error"},
    {"ZINC_RT_BACKEND", "",
     "zinc_rt, or vulkan: the peer backend, which is never taken unasked; empty: that of the tier"},
    {"ZINC_RT_VULKAN_DEVICE", "",
     "tier vulkan: a part of the name of the device to use; empty: the first GPU, never a processor"},
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
    {"ZINC_RT_SPECULATE", "auto",
     "tokens that a step may guess for a request: auto, off, or 1 to 32. Never changes a token"},
    {"ZINC_RT_DRAFT_MODEL", "",
     "a smaller model of the same vocabulary that guesses tokens: a GGUF file, or as the model. Never changes a token"},
    {"ZINC_RT_AMD_PATH", "",
     "T1: pm4, aql (queues of /dev/kfd) or cs (AMDGPU_CS); empty: the first of them that runs a fence"},
    {"ZINC_RT_PACKET_LOG", "",
     "T1, T2: a file for each submission's packets and memory, which zinc-rt replay runs again; slow"},
    {"ZINC_RT_STEP_LOG", "",
     "a file for the inputs and picks of all steps, which zinc-rt replay runs again on any tier; it has users' texts"},
    {"ZINC_RT_STEP_LOG_LOGITS", "0",
     "1: with ZINC_RT_STEP_LOG: hashes the logits of every pick, which are then read from the device; slow on GPUs"},
    {"ZINC_RT_DEVICE_LIMIT", "10", "T1, T2: seconds that a step may take before the device counts as lost"},
    {"ZINC_RT_API_KEY", "", "zinc-rt serve: the one key of the tenant \"default\"; empty: none", true},
    {"ZINC_RT_ADMIN_KEY", "", "zinc-rt serve: the key for tenants, metrics and loading models; empty: none", true},
    {"ZINC_RT_STATE", "",
     "zinc-rt serve: file of the usage ledger, or none; empty: zinc_rt/state.db in XDG_STATE_HOME or ~/.local/state"},
    {"ZINC_RT_MODELS", "",
     "folder of models that are found by name; empty: zinc_rt/models in XDG_DATA_HOME or ~/.local/share"},
    {"HF_ENDPOINT", "https://huggingface.co", "zinc-rt pull: the site of hf: names, or a mirror of it"},
    {"HF_TOKEN", "", "zinc-rt pull: the token for models of that site that want one", true},
    {"ZINC_RT_OLLAMA_REGISTRY", "https://registry.ollama.ai", "zinc-rt pull: the registry of ollama: names"},
    {"ZINC_RT_LOG", "warn", "log level on stderr: trace, debug, info, warn, error or off"},
    {"ZINC_RT_LOG_FORMAT", "text", "text, or json: an object a line"},
};

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return {};
}

// Returns the project's folder: zinc_rt + `end` in the folder that the environment variable names. If that variable is
// not set, returns it in `below_home` in the user's home.
std::string users_folder(const char* variable, const std::string& below_home, const std::string& end) {
  if (const auto folder = first_of({variable}); !folder.empty()) return folder + "/zinc_rt" + end;
  const auto home = first_of({"HOME"});
  return home.empty() ? home : home + "/" + below_home + "/zinc_rt" + end;
}

// Returns whether a no_proxy list contains the host, a domain that the host is in, or "*".
bool is_listed(std::string_view host, std::string_view list) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (entry.starts_with(' ') || entry.starts_with('.')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry.empty()) continue;
    const bool is_domain =
        host.ends_with(entry) && host.size() > entry.size() && host[host.size() - entry.size() - 1] == '.';
    if (entry == "*" || host == entry || is_domain) return true;
  }
  return false;
}

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
  return users_folder("XDG_STATE_HOME", ".local/state", "");
}

std::string cache_folder() {
  return users_folder("XDG_CACHE_HOME", ".cache", "");
}

std::string models_folder() {
  const auto named = get("ZINC_RT_MODELS");
  return named.empty() ? users_folder("XDG_DATA_HOME", ".local/share", "/models") : named;
}

std::string proxy_for(std::string_view scheme, std::string_view host) {
  if (is_listed(host, first_of({"no_proxy", "NO_PROXY"}))) return {};
  // HTTP_PROXY in capitals is not read, as in curl, because a web server may set it from a client's header.
  return scheme == "https" ? first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                           : first_of({"http_proxy", "all_proxy", "ALL_PROXY"});
}

Result<std::int64_t> get_int(std::string_view name, std::int64_t low, std::int64_t high) {
  const std::string text = get(name);
  std::int64_t value = 0;
  if (!read_number(text, value) || value < low || value > high)
    return fail(StatusCode::kInvalidArgument, "[options] {}={} is not a number from {} to {}", name, text, low, high);
  return value;
}

}  // namespace zinc_rt::options
