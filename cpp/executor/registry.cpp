#include "executor/registry.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zinc_rt {

extern const std::span<const ExecutorKind* const> kBuiltExecutors;  // generated: executor_list.cpp

namespace {

constexpr std::string_view kTiersOfOtherBuilds[] = {"t1", "t2", "t_metal", "t_intel", "t_cuda"};

// ": why" of a tier that the build left out; nothing of one that it could not have.
std::string why_left_out(std::string_view name) {
  for (const ExecutorKind* kind : executor_kinds()) {
    if (kind->left_out == nullptr) continue;
    for (const LeftOutExecutorTier& tier : kind->left_out())
      if (tier.name == name) return ": " + tier.why;
  }
  return {};
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
  for (const auto name : kTiersOfOtherBuilds)
    if (std::ranges::none_of(tiers, [&](const TierEntry& entry) { return entry.tier.name == name; }))
      choice.rejected.push_back(fmt::format("{}: not in this build{}", name, why_left_out(name)));
  if (choice.entry.executor == nullptr)
    return fail(StatusCode::kUnavailable, "[tier] no tier can run here: {}", fmt::join(choice.rejected, "; "));
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
  for (const TierEntry& entry : executor_tiers()) names.push_back(entry.tier.name);
  for (const auto name : kTiersOfOtherBuilds)
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  return names;
}

Result<TierChoice> pick_tier(std::string_view wanted) {
  const auto tiers = executor_tiers();
  if (wanted == "auto") return pick_best(tiers);
  const auto found = std::ranges::find(tiers, wanted, [](const TierEntry& entry) { return entry.tier.name; });
  if (found != tiers.end()) {
    if (const auto reason = found->tier.unavailable_reason(); !reason.empty())
      return fail(StatusCode::kUnavailable, "[tier] {} was asked for but cannot run here: {}", wanted, reason);
    return TierChoice{*found, "asked for by name", {}};
  }
  if (std::ranges::find(kTiersOfOtherBuilds, wanted) != std::end(kTiersOfOtherBuilds)) {
    std::vector<std::string> built;
    for (const TierEntry& entry : tiers) built.push_back(entry.tier.name);
    return fail(StatusCode::kUnavailable, "[tier] {} was asked for but this build does not have it{}; it has: auto, {}",
                wanted, why_left_out(wanted), fmt::join(built, ", "));
  }
  return fail(StatusCode::kInvalidArgument, "[tier] unknown tier \"{}\"; one of: auto, {}", wanted,
              fmt::join(known_tier_names(), ", "));
}

Result<std::unique_ptr<Executor>> open_executor(const std::string& path, const ExecutorOptions& options) {
  ZRT_TRY(const auto choice, pick_tier(options.tier));
  auto on_tier = options;
  on_tier.tier = choice.entry.tier.name;
  ZRT_TRY(auto executor, choice.entry.executor->open(path, on_tier));
  const ExecutorInfo& info = executor->info();
  log().info("{}: {} ({}); {} slots, context {}, {} pages of {} bytes", executor->config().name, info.tier, choice.why,
             info.max_slots, info.max_context, info.n_pages, info.page_bytes);
  return executor;
}

}  // namespace zinc_rt
