// Chooses the replica that serves a request. The engine uses it to choose one of its devices; a router in front of
// several servers uses it to choose a server. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mem/spans.h"

namespace zinc_rt::sched {

// ReplicaLoad is what a replica reports when a request arrives. Both numbers are in tokens.
struct ReplicaLoad {
  std::uint64_t cached_tokens = 0;   // tokens of the request's prompt that the replica has cached
  std::uint64_t backlog_tokens = 0;  // tokens that the replica's requests still have to compute
};

// placement_key() reads at most this many tokens of a prompt: four pages.
inline constexpr std::size_t kPlacementTokens = 64;

// Returns a number that is equal for requests with the same tenant, salt and beginning of the prompt. Such requests
// should share a replica, even before any replica has computed their common prefix. The number is the same in every
// process. Only the first kPlacementTokens tokens are read.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, mem::SpanView prompt);
// Returns such a number for a prompt that is not tokenized yet. It reads four bytes in place of each token.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, std::span<const std::byte> prompt);

// Returns the index of the replica that will have computed the prompt soonest. Usually that is the replica with the
// longest cached prefix. Another replica is chosen if its backlog is shorter by more tokens than the longer cached
// prefix saves. If several replicas are equally soon, the longer cached prefix wins, then rendezvous hashing of the
// key. Rendezvous hashing moves few keys when a replica is added or removed. REQUIRES: at least one replica.
std::uint32_t choose_replica(std::span<const ReplicaLoad> replicas, std::uint64_t key);

}  // namespace zinc_rt::sched
