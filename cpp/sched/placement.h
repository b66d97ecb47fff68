// Chooses a replica for a request: one of the devices of an engine, or one of the servers behind a router. The rule is
// the same for both. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mem/spans.h"

namespace zinc_rt::sched {

// What a replica reports when a request comes. Both numbers are in tokens of prefill.
struct ReplicaLoad {
  std::uint64_t cached_tokens = 0;   // of the request's prompt: what it holds of it
  std::uint64_t backlog_tokens = 0;  // of all requests there: what it has not computed yet
};

// The tokens of a prompt that placement_key reads: its first four pages.
inline constexpr std::size_t kPlacementTokens = 64;

// A number that is equal for requests that should share a replica before any replica has computed their common prefix.
// It is the same in every process. REQUIRES: it reads at most the first kPlacementTokens tokens.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, mem::SpanView prompt);
// The same for a prompt that is not tokenized yet: four bytes count as one token.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, std::span<const std::byte> prompt);

// Returns the index of the replica that will have computed the prompt soonest. That is the one with the longest cached
// prefix, unless its backlog exceeds another's by more than the longer prefix saves. Among equals the longer prefix
// wins. Then rendezvous hashing of the key decides, so that adding or removing a replica moves few keys. REQUIRES: at
// least one replica.
std::uint32_t choose_replica(std::span<const ReplicaLoad> replicas, std::uint64_t key);

}  // namespace zinc_rt::sched
