#include "sched/sim/kv_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "sched/sim/mix.h"

namespace zinc_rt::sched::sim {

KvModel::KvModel(const Options& options)
    : is_recurrent_(options.is_recurrent),
      entries_(std::size_t{options.n_pages} * kPageTokens, kSpoilt),
      states_(std::size_t{options.n_slots} + options.n_checkpoints, kSpoilt),
      saved_(options.n_slots),
      chains_(options.n_slots) {}

void KvModel::copy_page(const PageMove& move) {
  const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(std::size_t{move.from} * kPageTokens);
  std::copy_n(from, kPageTokens, entries_.begin() + static_cast<std::ptrdiff_t>(std::size_t{move.to} * kPageTokens));
}

void KvModel::copy_state(const StateMove& move) {
  states_[move.to] = states_[move.from];
}

namespace {

std::uint64_t next_hash(std::uint64_t hash, std::int32_t token) {
  return mix(hash, static_cast<std::uint64_t>(token)) | 1;
}

}  // namespace

const KvModel::Chain& KvModel::chain_of(const PlanItem& item, const Request& r, std::uint64_t owner,
                                        std::uint32_t variant) {
  Chain& chain = chains_[item.slot];
  const std::uint64_t begin = mix(owner, variant) | 1;
  if (chain.request != r.id || chain.begin != begin) {
    chain.request = r.id;
    chain.begin = begin;
    chain.hashes.clear();
  }
  while (chain.hashes.size() < item.begin + item.n - item.n_drafts) {
    const std::size_t i = chain.hashes.size();
    chain.hashes.push_back(next_hash(i == 0 ? begin : chain.hashes.back(), r.tokens.ids()[i]));
  }
  return chain;
}

std::string KvModel::run(const PlanItem& item, const Request& r, std::span<const std::uint32_t> pages,
                         std::uint64_t owner, std::uint32_t variant) {
  if (std::size_t{item.begin} + item.n > r.tokens.with_guess().size() ||
      item.begin + item.n > pages.size() * kPageTokens)
    return fmt::format("tokens {} to {} of {} are to run in {} pages", item.begin, item.begin + item.n, r.tokens.size(),
                       pages.size());
  const Chain& chain = chain_of(item, r, owner, variant);
  for (std::uint32_t position = 0; position < item.begin; ++position)
    if (entry(pages, position) != chain.hashes[position])
      return fmt::format(
          "page {} of the slot (page {} of the pool) does not hold the KV of token {}; {} tokens count "
          "as computed",
          position / kPageTokens, pages[position / kPageTokens], position, item.begin);
  const std::uint32_t end = item.begin + item.n - item.n_drafts;
  for (std::uint32_t position = item.begin; position < end; ++position) entry(pages, position) = chain.hashes[position];
  // Entries of guessed tokens get the hashes of the guessed text. If the text continues differently, no step may read
  // these entries.
  std::uint64_t hash = chain.hashes[end - 1];
  for (std::uint32_t position = end; position < item.begin + item.n; ++position)
    entry(pages, position) = hash = next_hash(hash, r.tokens.with_guess().ids()[position]);
  if (!is_recurrent_) return {};
  const std::uint32_t replayed = item.begin - std::min(item.begin, item.n_replayed);
  if (replayed > 0 && states_[item.slot] != chain.hashes[replayed - 1])
    return fmt::format("the slot's recurrent state is not that after {} tokens of its text", replayed);
  auto& saved = saved_[item.slot];
  for (std::uint32_t i = 0; i < item.begin - replayed; ++i)
    if (i >= saved.size() || saved[i] != chain.hashes[replayed + i])
      return fmt::format("replayed token {} was not guess {} of the slot's last step", replayed + i, i);
  if (item.save_at > 0) {
    if (item.save_at <= replayed || item.save_at > item.begin)
      return fmt::format("the state after {} tokens is saved among tokens {} to {}", item.save_at, replayed,
                         item.begin);
    states_[item.save_to] = chain.hashes[item.save_at - 1];
  }
  states_[item.slot] = chain.hashes[end - 1];
  saved.clear();
  for (std::uint32_t position = end; position < item.begin + item.n; ++position)
    saved.push_back(entry(pages, position));
  return {};
}

void KvModel::spoil(const PlanItem& item, std::span<const std::uint32_t> pages) {
  for (std::uint32_t position = item.begin; position < item.begin + item.n; ++position)
    if (position / kPageTokens < pages.size()) entry(pages, position) = kSpoilt;
  states_[item.slot] = kSpoilt;
  saved_[item.slot].clear();
  if (item.save_at > 0) states_[item.save_to] = kSpoilt;
}

void KvModel::spoil_page(std::uint32_t page) {
  std::fill_n(entries_.begin() + static_cast<std::ptrdiff_t>(std::size_t{page} * kPageTokens), kPageTokens, kSpoilt);
}

}  // namespace zinc_rt::sched::sim
