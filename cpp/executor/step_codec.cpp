#include "executor/step_codec.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "kernels/common/kv_page.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kAheadFlag = 1, kTypesFlag = 2, kRunsFlag = 4;
enum RowFlag : std::uint32_t {
  kMaskedRow = 1,
  kProcessedRow = 2,
  kWantsLogits = 4,
  kWantsLogprobs = 8,
  kSharedHistory = 16,  // shares_history() with the row before it
  kSharedBias = 32,     // shares_bias() with the row before it
};
constexpr std::uint32_t kRowFlags = 63;

struct RowHead {
  std::uint64_t seed = 0;
  SamplingParams params;
  std::uint32_t token_index = 0, position = 0, n_prompt = 0, flags = 0;
  std::uint32_t n_logprobs = 0;
  std::int32_t scored = kNoToken;
  std::uint32_t n_kept_history = 0, n_new_history = 0, n_bias = 0, n_banned = 0;
};
// A member that is added to SamplingParams changes the format: raise kStepLogVersion (step_log.cpp).
static_assert(sizeof(RowHead) == 80 && sizeof(SamplingParams) == 32 && std::is_trivially_copyable_v<RowHead>);
static_assert(sizeof(TokenBias) == 8);

template <class Values>
void put_all(const Values& values, std::vector<std::byte>& to) {
  const auto bytes = std::as_bytes(std::span(values));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Returns how many entries at the beginning are equal.
template <class T>
std::uint32_t n_equal(const std::vector<T>& before, std::span<const T> now) {
  const std::size_t n = std::min(before.size(), now.size());
  if (n == 0 || std::memcmp(before.data(), now.data(), n * sizeof(T)) == 0) return static_cast<std::uint32_t>(n);
  return static_cast<std::uint32_t>(std::ranges::mismatch(before, now).in1 - before.begin());
}

// Makes `memory` equal to the entries, whose first n_kept it has already.
template <class T>
void remember(std::vector<T>& memory, std::size_t n_kept, std::span<const T> added) {
  memory.resize(n_kept);
  memory.insert(memory.end(), added.begin(), added.end());
}

// Calls use(slot, last position) for each slot of a step.
template <class Use>
void for_slots(const StepInput& input, const Use& use) {
  const std::size_t n = input.slots.size();
  for (std::size_t i = 0; i < n; ++i)
    if (i + 1 == n || input.slots[i + 1] != input.slots[i]) use(input.slots[i], input.positions[i]);
}

std::uint32_t pages_up_to(std::int32_t position) {
  return static_cast<std::uint32_t>(position) / kPageTokens + 1;
}

}  // namespace

// Reads values from a record. After the first value that is not there, it only returns zeros, and status() says what was
// missing.
class RecordReader {
 public:
  explicit RecordReader(const StepLogRecord& record) : record_(record) {}

  template <class T>
  T one() {
    T value{};
    if (has(1, sizeof(T))) std::memcpy(&value, here(sizeof(T)), sizeof(T));
    return value;
  }
  // Appends n values to a vector.
  template <class T>
  void many(std::uint64_t n, std::vector<T>& to) {
    if (n == 0 || !has(n, sizeof(T))) return;
    const std::size_t before = to.size();
    to.resize(before + n);
    std::memcpy(to.data() + before, here(n * sizeof(T)), n * sizeof(T));
  }
  // Notes an error; `what` is a message of the numbers that disagree.
  void refuse(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  bool is_good() const { return wrong_.empty(); }
  std::uint64_t n_left() const { return record_.bytes.size() - at_; }
  std::span<const std::byte> rest() { return record_.bytes.subspan(std::exchange(at_, record_.bytes.size())); }
  // Returns the first error. A record that is longer than its content is an error, too.
  Status status() {
    if (is_good() && n_left() > 0) refuse(fmt::format("{} bytes are left over", n_left()));
    if (is_good()) return {};
    return fail(StatusCode::kCorrupt, "[step_log] {} of {} bytes at {}: {}", to_string(record_.kind),
                record_.bytes.size(), record_.offset, wrong_);
  }

 private:
  bool has(std::uint64_t n, std::size_t size) {
    if (is_good() && n > n_left() / size)
      refuse(fmt::format("{} values of {} bytes wanted at {}, {} bytes there", n, size, at_, n_left()));
    return is_good();
  }
  const std::byte* here(std::uint64_t n_bytes) { return record_.bytes.data() + std::exchange(at_, at_ + n_bytes); }

  const StepLogRecord& record_;
  std::uint64_t at_ = 0;
  std::string wrong_;
};

bool StepEncoder::can_encode(const StepInput& input) {
  const std::size_t n = input.token_ids.size();
  const PageTables& tables = input.page_tables;
  if (n == 0 || input.positions.size() != n || input.slots.size() != n) return false;
  if (!input.token_types.empty() && input.token_types.size() != n) return false;
  ++n_checks_;
  bool is_good = true;
  for_slots(input, [&](std::int32_t slot, std::int32_t position) {
    const auto s = static_cast<std::size_t>(slot);
    is_good = is_good && slot >= 0 && position >= 0 && s < slots_.size() && s < tables.counts.size() &&
              (s + 1) * tables.width <= tables.ids.size() && pages_up_to(position) <= tables.width &&
              (input.rope_variants.empty() || s < input.rope_variants.size()) &&
              std::exchange(slots_[s].last_record, n_checks_) != n_checks_;
  });
  std::uint64_t n_history = 0;
  for (std::size_t i = 0; i < input.outputs.size(); ++i) {
    const OutputRow& row = input.outputs[i];
    n_history += row.history.size();
    if (i > 0 && shares_history(row, input.outputs[i - 1])) n_history -= input.outputs[i - 1].history.size();
    is_good = is_good && row.token_index < n;
  }
  return is_good && n_history <= kMostLoggedHistory;
}

void StepEncoder::encode(const StepInput& input, bool is_ahead, std::vector<std::byte>& to) {
  std::uint32_t n_tables = 0;
  for_slots(input, [&](std::int32_t, std::int32_t) { ++n_tables; });
  const bool has_types = !input.token_types.empty();
  const std::uint32_t head[] = {
      static_cast<std::uint32_t>(input.token_ids.size()), n_tables, static_cast<std::uint32_t>(input.outputs.size()),
      (is_ahead ? kAheadFlag : 0) | (has_types ? kTypesFlag : 0) | (input.runs.empty() ? 0 : kRunsFlag)};
  put_all(head, to);
  for (const auto* values : {&input.token_ids, &input.positions, &input.slots, &input.token_types})
    put_all(*values, to);
  if (!input.runs.empty()) {
    const auto n_runs = static_cast<std::uint32_t>(input.runs.size());
    put_all(std::span(&n_runs, 1), to);
    put_all(input.runs, to);
  }
  for_slots(input, [&](std::int32_t slot, std::int32_t position) {
    const auto s = static_cast<std::size_t>(slot);
    auto& known = slots_[s].pages;
    const auto now = input.page_tables.ids.subspan(s * input.page_tables.width, pages_up_to(position));
    const std::uint32_t n_kept = n_equal(known, now),
                        variant = input.rope_variants.empty() ? 0 : input.rope_variants[s];
    const std::uint32_t table[] = {static_cast<std::uint32_t>(slot), variant, n_kept,
                                   static_cast<std::uint32_t>(now.size()) - n_kept};
    put_all(table, to);
    put_all(now.subspan(n_kept), to);
    remember(known, n_kept, now.subspan(n_kept));
  });
  for (std::size_t i = 0; i < input.outputs.size(); ++i) {
    const OutputRow& row = input.outputs[i];
    const bool is_first = i == 0;
    const bool has_shared_history = !is_first && shares_history(row, input.outputs[i - 1]);
    const bool has_shared_bias = !is_first && shares_bias(row, input.outputs[i - 1]);
    auto& known = slots_[static_cast<std::size_t>(input.slots[row.token_index])].history;
    const std::uint32_t n_kept = n_equal(known, row.history);
    const RowHead row_head{
        .seed = row.sampling.seed,
        .params = row.sampling,
        .token_index = row.token_index,
        .position = row.position,
        .n_prompt = row.n_prompt,
        .flags = (row.is_masked ? kMaskedRow : 0u) | (row.is_processed ? kProcessedRow : 0u) |
                 (row.wants_logits ? kWantsLogits : 0u) | (row.n_logprobs ? kWantsLogprobs : 0u) |
                 (has_shared_history ? kSharedHistory : 0u) | (has_shared_bias ? kSharedBias : 0u),
        .n_logprobs = row.n_logprobs.value_or(0),
        .scored = row.scored,
        .n_kept_history = n_kept,
        .n_new_history = static_cast<std::uint32_t>(row.history.size()) - n_kept,
        .n_bias = static_cast<std::uint32_t>(row.bias.size()),
        .n_banned = static_cast<std::uint32_t>(row.banned.size()),
    };
    put_all(std::span(&row_head, 1), to);
    put_all(row.history.subspan(n_kept), to);
    // A row without penalties has no history; what is known of its slot stays.
    if (!row.history.empty()) remember(known, n_kept, row.history.subspan(n_kept));
    if (has_shared_bias) continue;
    put_all(row.bias, to);
    put_all(row.banned, to);
  }
}

Status StepDecoder::decode(const StepLogRecord& record, RecordedStep& step) {
  RecordReader in(record);
  const auto n_tokens = in.one<std::uint32_t>(), n_tables = in.one<std::uint32_t>(), n_rows = in.one<std::uint32_t>(),
             flags = in.one<std::uint32_t>();
  constexpr std::uint32_t kFlags = kAheadFlag | kTypesFlag | kRunsFlag;
  if (flags > kFlags) in.refuse(fmt::format("flags {}, {} known", flags, kFlags));
  step.is_ahead = (flags & kAheadFlag) != 0;
  for (auto* values : {&step.token_ids, &step.positions, &step.slots, &step.token_types}) {
    values->clear();
    if (values != &step.token_types || (flags & kTypesFlag) != 0) in.many(n_tokens, *values);
  }
  step.runs.clear();
  if ((flags & kRunsFlag) != 0) in.many(in.one<std::uint32_t>(), step.runs);
  take_tables(in, n_tables, step);
  take_rows(in, n_rows, step);
  return in.status();
}

void StepDecoder::take_tables(RecordReader& in, std::uint32_t n, RecordedStep& step) {
  step.tables.clear();
  step.pages.clear();
  ++n_records_;
  for (std::uint32_t i = 0; i < n && in.is_good(); ++i) {
    const auto slot = in.one<std::uint32_t>(), variant = in.one<std::uint32_t>(), n_kept = in.one<std::uint32_t>(),
               n_new = in.one<std::uint32_t>();
    if (slot >= slots_.size()) return in.refuse(fmt::format("slot {} of {}", slot, slots_.size()));
    SlotMemory& known = slots_[slot];
    if (std::exchange(known.last_record, n_records_) == n_records_)
      return in.refuse(fmt::format("slot {} has two of the {} tables", slot, n));
    if (n_kept > known.pages.size())
      return in.refuse(fmt::format("slot {} keeps {} pages of {}", slot, n_kept, known.pages.size()));
    known.pages.resize(n_kept);
    in.many(n_new, known.pages);
    step.tables.push_back({slot, variant, step.pages.size(), known.pages.size()});
    step.pages.insert(step.pages.end(), known.pages.begin(), known.pages.end());
  }
}

void StepDecoder::take_rows(RecordReader& in, std::uint32_t n, RecordedStep& step) {
  for (auto* values : {&step.histories, &step.banned}) values->clear();
  step.biases.clear();
  step.outputs.clear();
  // The rows get their spans at the end, when the memory no longer moves.
  struct Lists {
    std::size_t history = 0, bias = 0, banned = 0;  // where they begin
    std::size_t n_history = 0, n_bias = 0, n_banned = 0;
  };
  std::vector<Lists> lists;
  for (std::uint32_t i = 0; i < n && in.is_good(); ++i) {
    const auto head = in.one<RowHead>();
    const Lists before = lists.empty() ? Lists() : lists.back();
    const auto slot =
        head.token_index < step.slots.size() ? static_cast<std::uint32_t>(step.slots[head.token_index]) : UINT32_MAX;
    if (head.flags > kRowFlags || slot >= slots_.size())
      return in.refuse(fmt::format("row {} has flags {} and token {} of {}", i, head.flags, head.token_index,
                                   step.token_ids.size()));
    Lists now{step.histories.size(), step.biases.size(),
              step.banned.size(),    std::size_t{head.n_kept_history} + head.n_new_history,
              head.n_bias,           head.n_banned};
    auto& known = slots_[slot].history;
    if (head.n_kept_history > known.size())
      return in.refuse(fmt::format("row {} keeps {} tokens of a history of {}", i, head.n_kept_history, known.size()));
    if (now.n_history > 0) {
      known.resize(head.n_kept_history);
      in.many(head.n_new_history, known);
      const std::size_t n_shared = (head.flags & kSharedHistory) != 0 ? before.n_history : 0;
      const auto shared = std::span(step.histories).last(n_shared);
      if (n_shared > known.size() || !std::ranges::equal(shared, std::span(known).first(n_shared)))
        return in.refuse(fmt::format("row {} shares {} tokens, which its {} are not", i, n_shared, known.size()));
      if (const std::size_t all = step.histories.size() + known.size() - n_shared; all > kMostLoggedHistory)
        return in.refuse(fmt::format("histories of {} tokens, {} allowed", all, kMostLoggedHistory));
      now.history = step.histories.size() - n_shared;
      step.histories.insert(step.histories.end(), known.begin() + static_cast<std::ptrdiff_t>(n_shared), known.end());
    }
    if ((head.flags & kSharedBias) == 0) {
      in.many(now.n_bias, step.biases);
      in.many(now.n_banned, step.banned);
    } else {
      if (now.n_bias != before.n_bias || (now.n_banned != before.n_banned && now.n_banned != 0))
        return in.refuse(fmt::format("row {} shares {} biased and {} banned tokens of {} and {}", i, now.n_bias,
                                     now.n_banned, before.n_bias, before.n_banned));
      now.bias = before.bias;
      now.banned = before.banned;
    }
    OutputRow& row = step.outputs.emplace_back();
    static_cast<SamplingParams&>(row.sampling) = head.params;
    row.sampling.seed = head.seed;
    row.token_index = head.token_index;
    row.position = head.position;
    row.n_prompt = head.n_prompt;
    row.is_masked = (head.flags & kMaskedRow) != 0;
    row.is_processed = (head.flags & kProcessedRow) != 0;
    row.wants_logits = (head.flags & kWantsLogits) != 0;
    if ((head.flags & kWantsLogprobs) != 0) row.n_logprobs = head.n_logprobs;
    row.scored = head.scored;
    lists.push_back(now);
  }
  if (!in.is_good()) return;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    OutputRow& row = step.outputs[i];
    const Lists& l = lists[i];
    if (l.n_history > 0) row.history = std::span(step.histories).subspan(l.history, l.n_history);
    if (l.n_bias > 0) row.bias = std::span(step.biases).subspan(l.bias, l.n_bias);
    if (l.n_banned > 0) row.banned = std::span(step.banned).subspan(l.banned, l.n_banned);
  }
}

void put_item(StepItem item, std::uint32_t row, std::span<const std::byte> bytes, std::vector<std::byte>& to) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  const auto n = static_cast<std::uint32_t>((bytes.size() + kWord - 1) / kWord);
  const std::uint32_t head[] = {static_cast<std::uint32_t>(item), row, n, 0};
  put_all(head, to);
  put_all(bytes, to);
  to.resize(to.size() + n * kWord - bytes.size());
}

void RecordedFinish::clear() {
  masks.clear();
  changed.clear();
  words.clear();
  hashes.clear();
  picks.clear();
  has_failed = false;
  failure.clear();
}

std::span<const std::uint32_t> RecordedFinish::words_of(const std::vector<Part>& parts, std::uint32_t row) const {
  const auto it = std::ranges::find(parts, row, &Part::row);
  return it == parts.end() ? std::span<const std::uint32_t>() : std::span(words).subspan(it->begin, it->n);
}

bool RecordedFinish::has_hash(std::uint32_t row) const {
  return std::ranges::find(hashes, row, &Hash::row) != hashes.end();
}

Status decode_finish(const StepLogRecord& record, RecordedFinish& finish) {
  RecordReader in(record);
  finish.clear();
  while (in.is_good() && in.n_left() > 0) {
    const auto kind = in.one<std::uint32_t>(), row = in.one<std::uint32_t>(), n = in.one<std::uint32_t>(),
               zero = in.one<std::uint32_t>();
    if (!in.is_good()) break;
    if (kind >= kStepItems || zero != 0) {
      in.refuse(fmt::format("an item of kind {}, {} are known", kind, kStepItems));
      break;
    }
    switch (static_cast<StepItem>(kind)) {
      case StepItem::kMask:
      case StepItem::kChanged:
        (static_cast<StepItem>(kind) == StepItem::kMask ? finish.masks : finish.changed)
            .push_back({row, finish.words.size(), n});
        in.many(n, finish.words);
        break;
      case StepItem::kHash:
        if (n != sizeof(std::uint64_t) / sizeof(std::uint32_t)) in.refuse(fmt::format("a hash of {} words, not 2", n));
        finish.hashes.push_back({row, in.one<std::uint64_t>()});
        break;
      case StepItem::kPicks: in.many(n, finish.picks); break;
      case StepItem::kFailed: {
        std::vector<char> text;
        in.many(n * std::uint64_t{sizeof(std::uint32_t)}, text);
        finish.has_failed = true;
        finish.failure.assign(text.begin(), std::ranges::find(text, '\0'));
        break;
      }
    }
  }
  return in.status();
}

Result<WrittenPages> decode_written_pages(const StepLogRecord& record) {
  RecordReader in(record);
  WrittenPages written;
  in.many(in.one<std::uint32_t>(), written.pages);
  if (in.is_good()) written.bytes = in.rest();
  ZRT_CHECK_OK(in.status());
  return written;
}

Result<std::vector<std::pair<std::uint32_t, std::uint32_t>>> decode_copies(const StepLogRecord& record) {
  RecordReader in(record);
  std::vector<std::uint32_t> words;
  in.many(in.n_left() / sizeof(std::uint32_t) / 2 * 2, words);
  ZRT_CHECK_OK(in.status());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::size_t i = 0; i < words.size(); i += 2) pairs.emplace_back(words[i], words[i + 1]);
  return pairs;
}

}  // namespace zinc_rt
