#include "ring/amd/proven_device.h"

#include <fmt/ranges.h>

#include <cstring>

#include "base/error.h"
#include "base/options.h"

namespace zinc_rt::ring {

Result<ProvenDevice> ProvenDevice::make(std::unique_ptr<AmdDevice> device, std::chrono::milliseconds limit) {
  ProvenDevice proven(std::move(device));
  ZRT_TRY(proven.page_, proven.device_->alloc(sizeof(std::uint64_t), AmdDevice::Place::kHost));
  std::memset(proven.page_.host, 0, proven.page_.bytes);
  ZRT_TRY(auto path, proven.device_->open_path());
  proven.queue_ = std::make_unique<PacketQueue>(*proven.device_, std::move(path), proven.page_, limit);
  ZRT_CHECK_OK(proven.queue_->prove());
  return proven;
}

ProvenDevice::~ProvenDevice() {
  queue_.reset();
  if (device_ != nullptr && page_.host != nullptr) device_->free(page_);
}

Result<std::chrono::milliseconds> device_limit() {
  constexpr std::int64_t kMostSeconds = 24 * 3600;
  ZRT_TRY(const auto seconds, options::get_int("ZINC_RT_DEVICE_LIMIT", 1, kMostSeconds));
  return std::chrono::seconds(seconds);
}

Result<ProvenDevice> first_proven(std::span<const AmdWay> ways, std::chrono::milliseconds limit) {
  const std::string wanted = options::get("ZINC_RT_AMD_PATH");
  std::vector<std::string> reasons, names;
  for (const AmdWay& way : ways) {
    names.emplace_back(way.name);
    if (!wanted.empty() && wanted != way.name) continue;
    auto device = way.make();
    auto proven = device ? ProvenDevice::make(std::move(*device), limit)
                         : Result<ProvenDevice>(std::unexpected(std::move(device).error()));
    if (proven) return proven;
    // Of one way the error is the result's; of several each one's is in the text.
    if (ways.size() == 1 || !wanted.empty()) return proven;
    reasons.push_back(fmt::format("{}: {}", way.description, proven.error().message));
  }
  if (reasons.empty())
    return fail(StatusCode::kInvalidArgument, "[amd] ZINC_RT_AMD_PATH is \"{}\", of: {}", wanted,
                fmt::join(names, ", "));
  return fail(StatusCode::kUnavailable, "[amd] no way of running packets works here. {}", fmt::join(reasons, "; "));
}

std::string tell_proofs(std::span<const AmdWay> ways) {
  constexpr auto kLimit = std::chrono::seconds(1);
  std::vector<std::string> lines;
  for (const AmdWay& way : ways) {
    auto device = way.make();
    const auto proven = device ? ProvenDevice::make(std::move(*device), kLimit)
                               : Result<ProvenDevice>(std::unexpected(std::move(device).error()));
    lines.push_back(fmt::format("{} ({}): {}", way.description, way.name,
                                proven ? "ran NOPs and a fence" : proven.error().message));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace zinc_rt::ring
