#include "executor/step_check.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/common/kv_page.h"

namespace zinc_rt {
namespace {

std::unexpected<Error> refuse(const std::string& message) {
  return fail(StatusCode::kInvalidArgument, "[executor] {}", message);
}

}  // namespace

StepCheck::StepCheck(const Limits& limits)
    : limits_(limits), slot_seen_(limits.sizes.max_slots), n_guessed_(limits.sizes.max_slots) {
  named_.reserve(2 * std::size_t{limits.sizes.max_tokens});
}

Status StepCheck::check(const StepInput& input, bool is_ahead) {
  ZRT_CHECK_OK(check_tokens(input, is_ahead));
  ZRT_CHECK_OK(check_slots(input));
  ZRT_CHECK_OK(check_outputs(input));
  if (limits_.state_guesses == 0) return {};
  for (const std::int32_t slot : input.slots) n_guessed_[static_cast<std::size_t>(slot)] = 0;
  for (const SlotRun& run : input.runs) n_guessed_[run.slot] = run.n_guessed;
  return {};
}

Status StepCheck::check_tokens(const StepInput& input, bool is_ahead) const {
  const std::size_t n = input.token_ids.size();
  if (n == 0 || n > limits_.sizes.max_tokens)
    return refuse(fmt::format("a step of {} tokens, 1 to {} allowed", n, limits_.sizes.max_tokens));
  if (input.positions.size() != n || input.slots.size() != n)
    return refuse(
        fmt::format("{} tokens with {} positions and {} slots", n, input.positions.size(), input.slots.size()));
  const std::size_t n_tables = input.page_tables.counts.size();
  if (n_tables > limits_.sizes.max_slots)
    return refuse(fmt::format("{} page tables, {} slots", n_tables, limits_.sizes.max_slots));
  if (n_tables * input.page_tables.width > input.page_tables.ids.size())
    return refuse(fmt::format("{} page tables of {} pages in a memory of {}", n_tables, input.page_tables.width,
                              input.page_tables.ids.size()));
  if (!input.rope_variants.empty() && input.rope_variants.size() != n_tables)
    return refuse(fmt::format("{} RoPE variants for {} slots", input.rope_variants.size(), n_tables));
  if (!input.token_types.empty() && input.token_types.size() != n)
    return refuse(fmt::format("{} tokens with {} token types", n, input.token_types.size()));
  if (input.features.size() != n * limits_.read_features)
    return refuse(fmt::format("{} tokens with {} values of features, {} wanted", n, input.features.size(),
                              n * limits_.read_features));
  for (const auto type : input.token_types)
    if (type < 0 || static_cast<std::uint32_t>(type) >= limits_.n_token_types)
      return refuse(fmt::format("token type {}, the model has {}", type, limits_.n_token_types));
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = input.token_ids[i], position = input.positions[i], slot = input.slots[i];
    if ((id < 0 || static_cast<std::uint32_t>(id) >= limits_.vocab_size) && !(is_ahead && id == kLastPick))
      return refuse(fmt::format("token id {} at index {}, the vocabulary has {}", id, i, limits_.vocab_size));
    if (position < 0 || static_cast<std::uint32_t>(position) >= limits_.sizes.max_context)
      return refuse(fmt::format("position {} at index {}, the context has {}", position, i, limits_.sizes.max_context));
    if (slot < 0 || static_cast<std::size_t>(slot) >= n_tables)
      return refuse(fmt::format("slot {} at index {}, {} have page tables", slot, i, n_tables));
  }
  return {};
}

// The tokens of a slot must be consecutive and ascend, because recurrent state is updated in their order. The last
// position then determines how many pages are read.
Status StepCheck::check_slots(const StepInput& input) {
  ++n_checks_;
  auto run = input.runs.begin();
  for (std::size_t i = 0; i < input.slots.size();) {
    const auto slot = static_cast<std::size_t>(input.slots[i]);
    if (slot_seen_[slot] == n_checks_)
      return refuse(fmt::format("the tokens of slot {} do not stand together (index {})", slot, i));
    slot_seen_[slot] = n_checks_;
    const std::size_t first = i;
    for (++i; i < input.slots.size() && input.slots[i] == input.slots[i - 1]; ++i)
      if (input.positions[i] <= input.positions[i - 1])
        return refuse(fmt::format("position {} after {} in slot {}", input.positions[i], input.positions[i - 1], slot));
    if (limits_.needs_whole_texts && static_cast<std::size_t>(input.positions[i - 1]) != i - 1 - first)
      return refuse(fmt::format("slot {} has {} tokens up to position {}, {} wanted: the model computes a text whole",
                                slot, i - first, input.positions[i - 1], i - 1 - first));
    ZRT_CHECK_OK(check_slot(input, slot, static_cast<std::uint32_t>(input.positions[i - 1])));
    if (run == input.runs.end() || run->slot != slot) continue;
    ZRT_CHECK_OK(
        check_run(*run++, static_cast<std::uint32_t>(input.positions[first]), static_cast<std::uint32_t>(i - first)));
  }
  if (run != input.runs.end())
    return refuse(fmt::format("run {} of {} is of slot {}, whose tokens do not follow those of the run before",
                              run - input.runs.begin(), input.runs.size(), run->slot));
  return {};
}

Status StepCheck::check_slot(const StepInput& input, std::size_t slot, std::uint32_t last_position) const {
  const PageTables& tables = input.page_tables;
  const std::uint32_t n_needed = last_position / kPageTokens + 1;
  if (tables.counts[slot] > tables.width)
    return refuse(fmt::format("slot {} has {} pages in a table of {}", slot, tables.counts[slot], tables.width));
  if (tables.counts[slot] < n_needed)
    return refuse(
        fmt::format("position {} lies past the {} pages of slot {}", last_position, tables.counts[slot], slot));
  const auto pages = tables.ids.subspan(slot * tables.width, n_needed);
  // Counted without a branch, because this loop runs for each page of each slot.
  std::uint32_t n_outside = 0;
  for (const auto page : pages) n_outside += page >= limits_.n_pages;
  if (n_outside > 0)
    return refuse(fmt::format("page {} of {} in slot {}", *std::ranges::max_element(pages), limits_.n_pages, slot));
  if (!input.rope_variants.empty() && input.rope_variants[slot] >= limits_.n_rope_variants)
    return refuse(fmt::format("RoPE variant {} of {}", input.rope_variants[slot], limits_.n_rope_variants));
  return {};
}

// Checks the run of a slot that has n tokens in the step, from position `begin` on.
Status StepCheck::check_run(const SlotRun& run, std::uint32_t begin, std::uint32_t n) const {
  if (run.n_guessed > limits_.state_guesses || run.n_guessed >= n)
    return refuse(fmt::format("{} guesses among {} tokens of slot {}, {} allowed", run.n_guessed, n, run.slot,
                              std::min(limits_.state_guesses, n - 1)));
  if (run.n_replayed > n_guessed_[run.slot] || run.n_replayed > begin)
    return refuse(fmt::format("{} guesses are replayed before position {} of slot {}, whose last step had {}",
                              run.n_replayed, begin, run.slot, n_guessed_[run.slot]));
  if (run.save_at == 0) return {};
  if (run.save_at > begin || run.save_at + run.n_replayed <= begin)
    return refuse(fmt::format("the state after {} tokens is to be saved, {} to {} are replayed", run.save_at,
                              begin - run.n_replayed, begin));
  if (run.save_to < limits_.sizes.max_slots || run.save_to >= limits_.sizes.state_entries)
    return refuse(fmt::format("a state is to be saved in entry {}, checkpoints are {} to {}", run.save_to,
                              limits_.sizes.max_slots, limits_.sizes.state_entries));
  return {};
}

Status StepCheck::check_mask(std::span<const std::uint32_t> mask) const {
  const std::size_t most = limits_.sizes.mask_words / limits_.sizes.max_outputs;
  return mask.size() <= most
             ? Status{}
             : refuse(fmt::format("a mask of {} words for an output row, {} allowed", mask.size(), most));
}

Status StepCheck::check_outputs(const StepInput& input) const {
  std::size_t group_history = 0, group_bias = 0;  // sums over the output rows of one group
  for (std::size_t i = 0; i < input.outputs.size(); ++i) {
    const OutputRow& row = input.outputs[i];
    const bool is_first = i % limits_.sizes.max_outputs == 0;  // true for the first row of a group
    if (is_first) group_history = group_bias = 0;
    group_history += row.history.size();
    if (!is_first && shares_history(row, input.outputs[i - 1])) group_history -= input.outputs[i - 1].history.size();
    if (group_history > limits_.sizes.history_tokens)
      return refuse(fmt::format("histories of {} tokens in one group of output rows, {} fit", group_history,
                                limits_.sizes.history_tokens));
    if (row.bias.size() + row.banned.size() > kMaxBias)
      return refuse(fmt::format("{} biased and {} banned tokens in an output row, {} in all allowed", row.bias.size(),
                                row.banned.size(), kMaxBias));
    if (row.token_index >= input.token_ids.size())
      return refuse(fmt::format("an output row of token {} of {}", row.token_index, input.token_ids.size()));
    if (is_first || !shares_bias(row, input.outputs[i - 1])) group_bias += row.bias.size() + row.banned.size();
    if (group_bias > limits_.sizes.bias_entries)
      return refuse(fmt::format("{} biased and banned tokens in one group of output rows, {} fit", group_bias,
                                limits_.sizes.bias_entries));
    if (row.n_prompt > row.history.size())
      return refuse(fmt::format("{} prompt tokens in a history of {}", row.n_prompt, row.history.size()));
    if (row.history.size() > limits_.sizes.max_context)
      return refuse(fmt::format("a history of {} tokens, {} allowed", row.history.size(), limits_.sizes.max_context));
    if (row.n_logprobs) ZRT_CHECK_OK(check_logprobs(row));
  }
  return {};
}

Status StepCheck::check_logprobs(const OutputRow& row) const {
  if (!limits_.has_logprobs) return refuse("an output row with logprobs, which this executor does not compute");
  if (row.is_processed) return refuse("an output row with logprobs that is processed, one of both allowed");
  if (*row.n_logprobs > kMostLogprobs)
    return refuse(fmt::format("logprobs of {} tokens in an output row, {} allowed", *row.n_logprobs, kMostLogprobs));
  if (row.scored != kNoToken && (row.scored < 0 || static_cast<std::uint32_t>(row.scored) >= limits_.vocab_size))
    return refuse(
        fmt::format("an output row scores token id {}, the vocabulary has {}", row.scored, limits_.vocab_size));
  return {};
}

template <class Copy>
Status StepCheck::check_copies(std::span<const Copy> copies, std::uint32_t n_entries, std::string_view what) {
  if (copies.size() > limits_.sizes.max_tokens)
    return refuse(fmt::format("{} copies of a {} at once, {} allowed", copies.size(), what, limits_.sizes.max_tokens));
  named_.clear();
  for (const Copy& copy : copies)
    for (const auto entry : {copy.from, copy.to}) {
      if (entry >= n_entries) return refuse(fmt::format("{} {} of {}", what, entry, n_entries));
      named_.push_back(entry);
    }
  std::ranges::sort(named_);
  for (const Copy& copy : copies)
    if (std::ranges::equal_range(named_, copy.to).size() > 1)
      return refuse(fmt::format("{} {} is written and named again", what, copy.to));
  return {};
}

Status StepCheck::check(std::span<const StateCopy> copies) {
  return check_copies(copies, limits_.sizes.state_entries, "state entry");
}

Status StepCheck::check(std::span<const PageCopy> copies) {
  return check_copies(copies, limits_.n_pages, "page");
}

}  // namespace zinc_rt
