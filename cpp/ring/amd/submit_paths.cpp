#include "ring/amd/submit_paths.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "ring/amd/amd_ring.h"
#include "ring/amd/dispatch_checks.h"
#include "ring/amd/packet_checks.h"
#include "ring/amd/packet_replay.h"

namespace zinc_rt::ring {
namespace {

constexpr auto kProofLimit = std::chrono::seconds(1);

Result<ProvenDevice> open(const SubmitPath& path, std::chrono::milliseconds limit) {
  ZRT_TRY(auto device, path.make());
  return ProvenDevice::make(std::move(device), limit);
}

Result<ProvenDevice> prove(const SubmitPath& path, std::chrono::milliseconds limit) {
  ZRT_TRY(auto proven, open(path, limit));
  for (const DeviceCheck& check : check_packets(proven))
    if (!check.error.empty())
      return fail(StatusCode::kUnavailable, "[amd] a packet went wrong, {}: {}", check.name, check.error);
  return proven;
}

std::vector<DeviceCheck> check_kernels(ProvenDevice proven, std::span<const CodeImage> images) {
  const auto ring = AmdRing::make(std::move(proven), images);
  if (!ring) return {{{}, "kernels are loaded", ring.error().message, 0}};
  return check_dispatches(**ring);
}

}  // namespace

Result<std::chrono::milliseconds> device_limit() {
  constexpr std::int64_t kMostSeconds = 24 * 3600;
  ZRT_TRY(const auto seconds, options::get_int("ZINC_RT_DEVICE_LIMIT", 1, kMostSeconds));
  return std::chrono::seconds(seconds);
}

Result<std::vector<SubmitPath>> wanted_paths(std::span<const SubmitPath> paths) {
  const std::string wanted = options::get("ZINC_RT_AMD_PATH");
  if (wanted.empty()) return std::vector(paths.begin(), paths.end());
  std::vector<std::string_view> names;
  for (const SubmitPath& path : paths) {
    if (path.name == wanted) return std::vector{path};
    names.push_back(path.name);
  }
  return fail(StatusCode::kInvalidArgument, "[amd] ZINC_RT_AMD_PATH is \"{}\", of: {}", wanted, fmt::join(names, ", "));
}

Result<ProvenDevice> first_proven(std::span<const SubmitPath> paths, std::chrono::milliseconds limit) {
  std::vector<std::string> reasons;
  for (const SubmitPath& path : paths) {
    auto proven = prove(path, limit);
    if (proven || paths.size() == 1) return proven;
    reasons.push_back(fmt::format("{}: {}", path.description, proven.error().message));
  }
  return fail(StatusCode::kUnavailable, "[amd] no way of running packets works here. {}", fmt::join(reasons, "; "));
}

std::string describe_proofs(std::span<const SubmitPath> paths) {
  std::vector<std::string> lines;
  for (const SubmitPath& path : paths) {
    const auto proven = prove(path, kProofLimit);
    lines.push_back(fmt::format("{} ({}): {}", path.description, path.name,
                                proven ? "runs fences and all packets" : proven.error().message));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::vector<DeviceCheck> check_paths(std::span<const SubmitPath> paths, std::span<const CodeImage> images) {
  std::vector<DeviceCheck> all;
  const auto limit = device_limit();
  if (!limit) return {{{}, "ZINC_RT_DEVICE_LIMIT", limit.error().message, 0}};
  for (const SubmitPath& path : paths) {
    std::vector<DeviceCheck> checks;
    const auto begin = std::chrono::steady_clock::now();
    auto proven = open(path, *limit);
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    checks.push_back(
        {{}, "opens, and runs NOPs and a fence", proven ? std::string() : proven.error().message, us.count()});
    if (proven) {
      std::ranges::copy(check_packets(*proven), std::back_inserter(checks));
      if (checks.back().error.empty()) checks.push_back(check_many_buffers(*proven));
      if (checks.back().error.empty())
        std::ranges::copy(check_kernels(*std::move(proven), images), std::back_inserter(checks));
    }
    for (DeviceCheck& check : checks) {
      check.way = path.name;
      all.push_back(std::move(check));
    }
  }
  return all;
}

Result<std::vector<DeviceCheck>> replay_paths(std::span<const SubmitPath> paths, std::span<const std::byte> log) {
  ZRT_TRY(const auto limit, device_limit());
  ZRT_TRY(auto proven, first_proven(paths, limit));
  ZRT_TRY(auto checks, replay_packets(log, proven));
  for (DeviceCheck& check : checks) check.way = proven.device().describe();
  return checks;
}

}  // namespace zinc_rt::ring
