#include "executor/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/log.h"
#include "executor/recording_executor.h"

namespace zinc_rt {

extern const std::span<const ExecutorKind* const> kBuiltExecutors;  // generated: executor_list.cpp

namespace {

constexpr std::string_view kPlanned[] = {"t1", "t2", "t_metal", "t_intel"};

// Returns the tiers that this build lacks: tiers that were left out, each with the reason, and tiers that are only
// planned.
std::vector<LeftOutExecutorTier> absent_tiers(const std::vector<TierEntry>& built) {
  std::vector<LeftOutExecutorTier> absent;
  const auto is_there = [&](std::string_view name) {
    return std::ranges::any_of(built, [&](const TierEntry& entry) { return entry.tier.name == name; }) ||
           std::ranges::any_of(absent, [&](const LeftOutExecutorTier& tier) { return tier.name == name; });
  };
  for (const ExecutorKind* kind : executor_kinds()) {
    if (kind->left_out == nullptr) continue;
    for (LeftOutExecutorTier& tier : kind->left_out())
      if (!is_there(tier.name)) absent.push_back(std::move(tier));
  }
  for (const auto name : kPlanned)
    if (!is_there(name)) absent.push_back({std::string(name), {}});
  return absent;
}
std::string with_reason(std::string_view what, const LeftOutExecutorTier& tier) {
  return tier.why.empty() ? std::string(what) : fmt::format("{}: {}", what, tier.why);
}

// Returns a hint how to use a peer backend instead, if the build contains a peer; else an empty text.
std::string peers_hint() {
  std::vector<std::string> names;
  for (const ExecutorKind* kind : executor_kinds())
    if (kind->backend != kOwnBackend && kind->open != nullptr) names.push_back("--backend " + kind->backend);
  return names.empty() ? std::string()
                       : fmt::format("; {} (or ZINC_RT_BACKEND) takes a peer backend", fmt::join(names, ", "));
}

Result<TierChoice> pick_best(std::vector<TierEntry> tiers) {
  TierChoice choice;
  for (TierEntry& entry : tiers) {
    if (entry.tier.priority < 0) continue;
    if (const auto reason = entry.tier.unavailable_reason(); !reason.empty())
      choice.rejected.push_back(fmt::format("{}: {}", entry.tier.name, reason));
    else if (choice.entry.executor == nullptr)
      choice.entry = entry;
  }
  for (const LeftOutExecutorTier& tier : absent_tiers(tiers))
    choice.rejected.push_back(fmt::format("{}: {}", tier.name, with_reason("not in this build", tier)));
  if (choice.entry.executor == nullptr)
    return fail(StatusCode::kUnavailable, "[tier] no tier can run here: {}{}", fmt::join(choice.rejected, "; "),
                peers_hint());
  choice.why = fmt::format("best of the tiers that can run here: {}", choice.entry.tier.description);
  return choice;
}

}  // namespace

std::span<const ExecutorKind* const> executor_kinds() {
  return kBuiltExecutors;
}

std::vector<TierEntry> executor_tiers() {
  std::vector<TierEntry> list;
  for (const ExecutorKind* kind : executor_kinds())
    for (auto& tier : kind->tiers()) list.push_back({kind, std::move(tier)});
  std::ranges::stable_sort(list, std::greater{}, [](const TierEntry& entry) { return entry.tier.priority; });
  return list;
}

std::vector<std::string> known_tier_names() {
  std::vector<std::string> names;
  const auto built = executor_tiers();
  for (const TierEntry& entry : built) names.push_back(entry.tier.name);
  for (LeftOutExecutorTier& tier : absent_tiers(built)) names.push_back(std::move(tier.name));
  return names;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names{std::string(kOwnBackend)};
  for (const ExecutorKind* kind : executor_kinds())
    if (std::ranges::find(names, kind->backend) == names.end()) names.push_back(kind->backend);
  return names;
}

Result<TierChoice> pick_tier(std::string_view wanted, std::string_view backend) {
  const auto tiers = executor_tiers();
  if (!backend.empty()) {
    if (const auto names = backend_names(); std::ranges::find(names, backend) == names.end())
      return fail(StatusCode::kInvalidArgument, "[tier] unknown backend \"{}\"; one of: {}", backend,
                  fmt::join(names, ", "));
    const auto is_of_it = [&](const TierEntry& entry) { return entry.executor->backend == backend; };
    // A peer has one tier, with the peer's name, also in builds that lack it.
    if (wanted == "auto" && backend != kOwnBackend) return pick_tier(backend);
    const auto named = std::ranges::find(tiers, wanted, [](const TierEntry& entry) { return entry.tier.name; });
    if (named != tiers.end() && !is_of_it(*named))
      return fail(StatusCode::kInvalidArgument, "[tier] {} is of backend {}, but backend {} was asked for", wanted,
                  named->executor->backend, backend);
  }
  if (wanted == "auto") return pick_best(tiers);
  const auto found = std::ranges::find(tiers, wanted, [](const TierEntry& entry) { return entry.tier.name; });
  if (found != tiers.end()) {
    if (const auto reason = found->tier.unavailable_reason(); !reason.empty())
      return fail(StatusCode::kUnavailable, "[tier] {} was asked for but cannot run here: {}", wanted, reason);
    return TierChoice{*found, "asked for by name", {}};
  }
  for (const LeftOutExecutorTier& tier : absent_tiers(tiers)) {
    if (tier.name != wanted) continue;
    std::vector<std::string> built;
    for (const TierEntry& entry : tiers) built.push_back(entry.tier.name);
    return fail(StatusCode::kUnavailable, "[tier] {} was asked for but {}; it has: auto, {}", wanted,
                with_reason("this build does not have it", tier), fmt::join(built, ", "));
  }
  return fail(StatusCode::kInvalidArgument, "[tier] unknown tier \"{}\"; one of: auto, {}", wanted,
              fmt::join(known_tier_names(), ", "));
}

std::string advice_on_gpus(std::span<const std::string> makers, std::string_view taken_tier) {
  const auto maker = std::ranges::find_if(makers, [](const std::string& name) { return name != "NVIDIA"; });
  if (taken_tier != "t_cpu" || maker == makers.end()) return {};
  for (const ExecutorKind* kind : executor_kinds()) {
    if (kind->backend == kOwnBackend) continue;
    if (!kind->tiers().empty())
      return fmt::format(
          "a GPU of {} is here, which `auto` does not take: --backend {} runs models on it (docs/vulkan.md), --tier {} "
          "is the choice of the processor",
          *maker, kind->backend, taken_tier);
    const auto left_out = kind->left_out != nullptr ? kind->left_out() : std::vector<LeftOutExecutorTier>();
    return fmt::format(
        "a GPU of {} is here, which backend {} could take; this build does not have it{}. scripts/demo.sh installs "
        "what "
        "it needs and builds it",
        *maker, kind->backend, left_out.empty() ? "" : ": " + left_out.front().why);
  }
  return {};
}

Result<std::unique_ptr<Executor>> open_executor(const std::string& path, const ExecutorOptions& options) {
  ZRT_TRY(const auto choice, pick_tier(options.tier, options.backend));
  const ExecutorTier& tier = choice.entry.tier;
  if (const std::uint32_t n = tier.n_devices != nullptr ? tier.n_devices() : 1; options.device >= n)
    return fail(StatusCode::kInvalidArgument, "[tier] devices: {} of tier {}, which has {} here, from 0 on",
                options.device, tier.name, n);
  auto on_tier = options;
  on_tier.tier = tier.name;
  ZRT_TRY(auto executor, choice.entry.executor->open(path, on_tier));
  const ExecutorInfo& info = executor->info();
  log().info("{}: {} ({}); {} slots, context {}, {} pages of {} bytes", executor->config().name, info.tier, choice.why,
             info.max_slots, info.max_context, info.n_pages, info.page_bytes);
  if (options.step_log.empty()) return executor;
  static std::atomic<std::uint32_t> n_logs{0};
  const std::uint32_t number = ++n_logs;
  return RecordingExecutor::create(std::move(executor),
                                   number == 1 ? options.step_log : fmt::format("{}.{}", options.step_log, number),
                                   options.step_log_logits);
}

}  // namespace zinc_rt
