#include "ring/registry.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::ring {

extern const std::span<const Tier* const> kBuiltTiers;  // generated: ring_tiers.cpp

Result<Buffer> Ring::import_host(std::span<const std::byte>) {
  return fail(StatusCode::kUnavailable, "[ring] this tier computes in memory of its own; allocate and copy instead");
}

namespace {

// A part of a buffer object as the host sees it.
Result<std::span<std::byte>> part_of(Ring& ring, const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  ZRT_TRY(const auto memory, ring.map(buffer));
  if (offset > memory.size() || bytes > memory.size() - offset)
    return fail(StatusCode::kInvalidArgument, "[ring] {} bytes at {} leave buffer object {} of {} bytes", bytes, offset,
                buffer.id, memory.size());
  return memory.subspan(offset, bytes);
}

}  // namespace

Status Ring::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) {
  ZRT_TRY(const auto memory, part_of(*this, to, offset, data.size()));
  std::ranges::copy(data, memory.begin());
  return {};
}

Result<std::span<const std::byte>> Ring::read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) {
  return part_of(*this, from, offset, bytes);
}

Status Ring::upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) {
  return write(to, offset, matrix.data);
}

std::span<const Tier* const> tiers() {
  static const std::vector<const Tier*> sorted = [] {
    std::vector<const Tier*> list(kBuiltTiers.begin(), kBuiltTiers.end());
    std::ranges::stable_sort(list, [](const Tier* a, const Tier* b) { return a->priority > b->priority; });
    return list;
  }();
  return sorted;
}

std::span<const std::string_view> known_tier_names() {
  static constexpr std::string_view kNames[] = {"t1", "t2", "t_cpu", "t_metal", "t_intel", "t_cuda", "null"};
  return kNames;
}

Result<TierChoice> pick_tier(std::string_view wanted) {
  TierChoice choice;
  if (wanted == "auto") {
    for (const Tier* tier : tiers()) {
      if (tier->priority < 0) continue;
      const auto reason = tier->unavailable_reason();
      if (!reason.empty()) {
        choice.rejected.push_back(fmt::format("{}: {}", tier->name, reason));
      } else if (choice.tier == nullptr) {
        choice.tier = tier;
      }
    }
    for (const auto name : known_tier_names())
      if (std::ranges::none_of(tiers(), [&](const Tier* tier) { return tier->name == name; }))
        choice.rejected.push_back(fmt::format("{}: not in this build", name));
    if (choice.tier == nullptr)
      return fail(StatusCode::kUnavailable, "[tier] no tier can run here: {}", fmt::join(choice.rejected, "; "));
    choice.why = fmt::format("best of the tiers that can run here: {}", choice.tier->description);
    return choice;
  }
  for (const Tier* tier : tiers()) {
    if (tier->name != wanted) continue;
    if (const auto reason = tier->unavailable_reason(); !reason.empty())
      return fail(StatusCode::kUnavailable, "[tier] {} was asked for but cannot run here: {}", wanted, reason);
    choice.tier = tier;
    choice.why = "asked for by name";
    return choice;
  }
  std::vector<std::string_view> built;
  for (const Tier* tier : tiers()) built.push_back(tier->name);
  if (std::ranges::find(known_tier_names(), wanted) != known_tier_names().end())
    return fail(StatusCode::kUnavailable, "[tier] {} was asked for but this build does not have it; it has: auto, {}",
                wanted, fmt::join(built, ", "));
  return fail(StatusCode::kInvalidArgument, "[tier] unknown tier \"{}\"; one of: auto, {}", wanted,
              fmt::join(known_tier_names(), ", "));
}

}  // namespace zinc_rt::ring
