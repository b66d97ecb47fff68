#include "ring/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace zinc_rt::ring {

// Defined in ring_tiers.cpp, which CMake generates.
extern const std::span<const Tier* const> kBuiltTiers;
extern const std::span<const LeftOutTier> kLeftOutTiers;

Result<Buffer> Ring::import_host(std::span<const std::byte>) {
  return fail(StatusCode::kUnavailable, "[ring] this tier computes in memory of its own; allocate and copy instead");
}
Result<Buffer> Ring::import_bo(Ring&, const Buffer&) {
  return fail(StatusCode::kUnavailable, "[ring] a model's memory cannot be read by another one on this tier");
}
Status Ring::use_operand_sets(const Buffer&, std::uint64_t) {
  return fail(StatusCode::kUnavailable, "[ring] this tier reads operands from one set");
}

namespace {

// Returns the host's view of a part of a buffer object. Errors: kInvalidArgument if the part exceeds it.
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

std::span<const LeftOutTier> left_out_tiers() {
  return kLeftOutTiers;
}

Result<const Tier*> find_tier(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Tier* tier : tiers()) {
    names.push_back(tier->name);
    if (tier->name != name) continue;
    if (const auto reason = tier->unavailable_reason(); !reason.empty())
      return fail(StatusCode::kUnavailable, "[ring] tier {} cannot run here: {}", name, reason);
    return tier;
  }
  return fail(StatusCode::kInvalidArgument, "[ring] no tier \"{}\"; there are: {}", name, fmt::join(names, ", "));
}

}  // namespace zinc_rt::ring
