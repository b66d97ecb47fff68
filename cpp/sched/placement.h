// Where a request goes, of several places that hold the same model: devices of an engine, or servers behind a router.
// It is one rule for all of them, and knows neither. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mem/spans.h"

namespace zinc_rt::sched {

// What a place says about itself when a request comes. Both are in tokens of prefill.
struct PlaceLoad {
  std::uint64_t cached_tokens = 0;   // of the request's prompt: what it holds of it
  std::uint64_t backlog_tokens = 0;  // of all requests there: what it has not computed yet
};

// The tokens of a prompt that PlacementKey looks at: its first four pages.
inline constexpr std::size_t kPlacementTokens = 64;

// What requests have in common that should share a place before any place has computed something of them. It is the
// same number in every process. REQUIRES: no more than the first kPlacementTokens tokens are looked at.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, mem::SpanView prompt);
// The same of a prompt that is not in tokens yet: four bytes stand for one.
std::uint64_t placement_key(std::string_view tenant, std::string_view cache_salt, std::span<const std::byte> prompt);

// The index of the place that has computed the prompt soonest: that of the longest cached prefix, unless its backlog is
// more than another's and what the longer prefix saves. Of places that are as good the one with the longer prefix is
// taken, then the first of a rendezvous of the key with each place, so that a place more or less moves few keys.
// REQUIRES: at least one place.
std::uint32_t choose_place(std::span<const PlaceLoad> places, std::uint64_t key);

}  // namespace zinc_rt::sched
