#include "sched/placement.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "mem/siphash.h"

namespace zinc_rt::sched {

std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, mem::SpanView prompt) {
  static_assert(std::endian::native == std::endian::little);
  return placement_key(tenant, cache_salt, std::as_bytes(prompt.ids()));
}

std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, std::span<const std::byte> prompt) {
  // The length of each part is written before the part, so that no two lists of parts produce the same bytes.
  std::vector<std::byte> bytes;
  const auto put = [&](std::span<const std::byte> part) {
    const std::uint64_t n = part.size();
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::byte>(n >> shift));
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  put(std::as_bytes(std::span(tenant)));
  put(std::as_bytes(std::span(cache_salt)));
  put(prompt.first(std::min(prompt.size(), kPlacementTokens * sizeof(std::int32_t))));
  return mem::siphash(mem::SipKey{}, bytes);
}

std::uint32_t choose_replica(std::span<const ReplicaLoad> replicas, std::uint64_t key) {
  // A replica's rank begins with the tokens that it computes before the request's first token. The length of the prompt
  // is left out, because it is the same for all replicas.
  const auto rank = [&](std::uint32_t i) {
    const auto cached = static_cast<std::int64_t>(replicas[i].cached_tokens);
    const std::uint64_t pair[2] = {key, i};
    return std::tuple(static_cast<std::int64_t>(replicas[i].backlog_tokens) - cached, -cached,
                      mem::siphash(mem::SipKey{}, std::as_bytes(std::span(pair))));
  };
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < replicas.size(); ++i)
    if (rank(i) < rank(best)) best = i;
  return best;
}

}  // namespace zinc_rt::sched
