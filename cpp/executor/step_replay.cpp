#include "executor/step_replay.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "executor/step_codec.h"
#include "kernels/common/kv_page.h"
#include "model/fingerprint.h"
#include "zinc_rt/version.h"

namespace zinc_rt {
namespace {

template <class Value>
Result<Value> known_setting(std::string_view key, const std::string& text, const std::optional<Value>& value) {
  if (value) return *value;
  return fail(StatusCode::kCorrupt, "[step_log] the log's {} is \"{}\", which this program does not know", key, text);
}

Error of_step(std::uint64_t step, Error error) {
  error.message = fmt::format("[step_log] step {}: {}", step, error.message);
  return error;
}

// For each record of the log, the number of its partner: of a kBegin its kFinish, if there is one.
using Partners = std::vector<std::size_t>;
constexpr std::size_t kNoPartner = SIZE_MAX;

bool is_refused(const StepLog& log, std::size_t i) {
  return i + 1 < log.records.size() && log.records[i + 1].kind == StepLogKind::kRefused;
}

Result<Partners> find_partners(const StepLog& log) {
  Partners partners(log.records.size(), kNoPartner);
  std::deque<std::size_t> running;
  for (std::size_t i = 0; i < log.records.size(); ++i) {
    const StepLogRecord& record = log.records[i];
    if (record.kind == StepLogKind::kBegin && !is_refused(log, i)) {
      running.push_back(i);
      if (running.size() > 2)
        return fail(StatusCode::kCorrupt, "[step_log] {} steps run at byte {}, 2 can", running.size(), record.offset);
    }
    if (record.kind != StepLogKind::kFinish) continue;
    if (running.empty())
      return fail(StatusCode::kCorrupt, "[step_log] a step ends at byte {}, and none runs", record.offset);
    partners[running.front()] = i;
    running.pop_front();
  }
  return partners;
}

class StepPlayer {
 public:
  StepPlayer(const StepLog& log, Executor& executor)
      : log_(log), executor_(executor), decoder_(log.header), last_picks_(executor.info().max_slots, kNoToken) {
    for (Playing& playing : playing_) {
      StepInput& input = playing.input;
      input.on_logits = [this, &playing](std::uint32_t first, std::span<const float> logits) {
        take_rows(playing, first, logits, executor_.config().vocab_size);
      };
      input.on_embeddings = [this, &playing](std::uint32_t first, std::span<const float> rows) {
        take_rows(playing, first, rows, executor_.info().embedding_dim);
      };
      input.on_logprobs = [](std::uint32_t, std::span<const RowLogprobs>) {};
      input.mask = [&playing](std::uint32_t row) { return playing.wanted.mask_of(row); };
      input.process = [this, &playing](std::uint32_t row, std::span<float> logits) {
        const auto words = playing.wanted.changed_of(row);
        if (words.size() == logits.size())
          std::memcpy(logits.data(), words.data(), words.size_bytes());
        else if (playing.has_results())
          n_foreign_rows_ += 1;
      };
    }
  }

  Result<StepReplay> play(const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
    ZRT_TRY(partners_, find_partners(log_));
    for (std::size_t i = 0; i < log_.records.size(); ++i) {
      ZRT_CHECK_OK(play_record(i));
      if (on_progress) on_progress(log_.records[i].offset + log_.records[i].bytes.size(), log_.n_bytes);
    }
    while (n_playing_ > 0) ZRT_CHECK_OK(finish());
    return std::move(replay_);
  }

 private:
  // A step that has begun, with its results in the log.
  struct Playing {
    std::uint64_t number = 0;
    bool is_complete = false;  // the log has a kFinish
    RecordedStep step;
    RecordedFinish wanted;
    StepInput input;
    std::vector<std::uint32_t> page_ids, page_counts, rope_variants;
    std::vector<std::int32_t> unknown_slots;  // slots whose token the host does not know
    bool has_results() const { return is_complete && !wanted.has_failed; }
  };

  Status play_record(std::size_t i) {
    const StepLogRecord& record = log_.records[i];
    // The decoder needs all steps, also those that were refused.
    if (record.kind != StepLogKind::kBegin && is_refused(log_, i)) return {};
    switch (record.kind) {
      case StepLogKind::kBegin: return begin(i);
      case StepLogKind::kFinish: return n_ended_early_ > 0 ? (--n_ended_early_, Status{}) : finish();
      case StepLogKind::kCopyState:
        return copy<StateCopy>(record, [&](auto copies) { return executor_.copy_state(copies); });
      case StepLogKind::kCopyPages:
        return copy<PageCopy>(record, [&](auto copies) { return executor_.copy_pages(copies); });
      case StepLogKind::kWritePages: return write_pages(record);
      case StepLogKind::kHeader:
      case StepLogKind::kRefused: return {};
    }
    return {};
  }

  Status begin(std::size_t i) {
    if (n_playing_ == std::size(playing_) || (n_playing_ > 0 && !executor_.info().runs_ahead)) {
      ZRT_CHECK_OK(finish());
      ++n_ended_early_;
    }
    Playing& next = playing_[(first_playing_ + n_playing_) % 2];
    ZRT_CHECK_OK(decoder_.decode(log_.records[i], next.step));
    if (is_refused(log_, i)) return {};
    next.number = ++replay_.n_steps;
    replay_.n_tokens += next.step.token_ids.size();
    next.is_complete = partners_[i] != kNoPartner;
    next.wanted.clear();
    if (next.is_complete) ZRT_CHECK_OK(decode_finish(log_.records[partners_[i]], next.wanted));
    ZRT_CHECK_OK(fill(next));
    if (auto status = executor_.begin(next.input); !status)
      return std::unexpected(of_step(next.number, std::move(status).error()));
    ++n_playing_;
    return {};
  }

  // Makes the executor's input of a decoded step.
  Status fill(Playing& playing) {
    const RecordedStep& step = playing.step;
    StepInput& input = playing.input;
    input.token_ids = step.token_ids;
    input.positions = step.positions;
    input.slots = step.slots;
    input.token_types = step.token_types;
    input.runs = step.runs;
    input.outputs = step.outputs;
    const ExecutorInfo& info = executor_.info();
    const std::size_t width = info.max_context / kPageTokens;
    playing.page_ids.resize(width * info.max_slots);
    playing.page_counts.assign(info.max_slots, 0);
    playing.rope_variants.assign(info.max_slots, 0);
    for (const RecordedStep::Table& table : step.tables) {
      if (table.n > width || table.slot >= info.max_slots)
        return fail(StatusCode::kCorrupt, "[step_log] step {}: slot {} of {} has {} pages, a context has {}",
                    playing.number, table.slot, info.max_slots, table.n, width);
      const auto pages = std::span(step.pages).subspan(table.begin, table.n);
      std::ranges::copy(pages, playing.page_ids.begin() + static_cast<std::ptrdiff_t>(table.slot * width));
      playing.page_counts[table.slot] = static_cast<std::uint32_t>(table.n);
      playing.rope_variants[table.slot] = table.rope_variant;
    }
    input.page_tables = {playing.page_ids, static_cast<std::uint32_t>(width), playing.page_counts};
    input.rope_variants = playing.rope_variants;
    for (std::uint32_t row = 0; row < input.outputs.size(); ++row) {
      input.outputs[row].wants_logits = playing.wanted.has_hash(row);
      if (!info.has_logprobs) input.outputs[row].n_logprobs.reset();
    }
    playing.unknown_slots.clear();
    if (n_playing_ == 0) resolve_last_picks(playing);
    return {};
  }

  // Replaces the tokens that the host did not know by the picks of the log. If the log has no pick for a slot, the slot
  // ended there, and its results mean nothing.
  void resolve_last_picks(Playing& playing) {
    for (std::size_t i = 0; i < playing.input.token_ids.size(); ++i) {
      if (playing.input.token_ids[i] != kLastPick) continue;
      const std::int32_t slot = playing.input.slots[i];
      const bool is_known = static_cast<std::uint32_t>(slot) < last_picks_.size() &&
                            last_picks_[static_cast<std::size_t>(slot)] != kNoToken;
      playing.input.token_ids[i] = is_known ? last_picks_[static_cast<std::size_t>(slot)] : 0;
      if (!is_known) playing.unknown_slots.push_back(slot);
    }
  }

  Status finish() {
    Playing& playing = playing_[first_playing_];
    auto status = executor_.finish(output_);
    first_playing_ = 1 - first_playing_;
    --n_playing_;
    // A step that failed when it was recorded may fail again.
    if (!status && !playing.wanted.has_failed)
      return std::unexpected(of_step(playing.number, std::move(status).error()));
    if (!playing.has_results()) {
      ++replay_.n_without_results;
      for (const std::int32_t slot : playing.input.slots) last_picks_[static_cast<std::size_t>(slot)] = kNoToken;
      return {};
    }
    if (n_foreign_rows_ > 0)
      return fail(StatusCode::kCorrupt, "[step_log] step {}: {} rows of changed logits have another size",
                  playing.number, n_foreign_rows_);
    const auto& picks = playing.wanted.picks;
    if (picks.size() != output_.tokens.size())
      return fail(StatusCode::kCorrupt, "[step_log] step {}: the log has {} picks, the step {}", playing.number,
                  picks.size(), output_.tokens.size());
    for (std::uint32_t row = 0; row < picks.size(); ++row) {
      last_picks_[static_cast<std::size_t>(slot_of(playing, row))] = picks[row];
      replay_.n_picks += compare(playing, StepDifference::Quantity::kPick, row, static_cast<std::uint32_t>(picks[row]),
                                 static_cast<std::uint32_t>(output_.tokens[row]));
      if (row > 0 && slot_of(playing, row) == slot_of(playing, row - 1)) ++replay_.n_further_rows;
    }
    return {};
  }

  std::int32_t slot_of(const Playing& playing, std::uint32_t row) const {
    return playing.input.slots[playing.input.outputs[row].token_index];
  }

  void take_rows(Playing& playing, std::uint32_t first, std::span<const float> rows, std::size_t width) {
    const auto quantity = executor_.info().pooling == Pooling::kNone ? StepDifference::Quantity::kLogits
                                                                     : StepDifference::Quantity::kEmbedding;
    for (; !rows.empty(); rows = rows.subspan(width), ++first) {
      const auto it = std::ranges::find(playing.wanted.hashes, first, &RecordedFinish::Hash::row);
      if (it != playing.wanted.hashes.end())
        replay_.n_hashes += compare(playing, quantity, first, it->value, hash_of_row(rows.first(width)));
    }
  }

  // Returns whether the values could be compared.
  bool compare(const Playing& playing, StepDifference::Quantity quantity, std::uint32_t row, std::uint64_t wanted,
               std::uint64_t got) {
    const std::int32_t slot = slot_of(playing, row);
    if (std::ranges::find(playing.unknown_slots, slot) != playing.unknown_slots.end()) return false;
    if (wanted == got) return true;
    ++replay_.n_differences;
    if (!replay_.first)
      replay_.first = {.step = playing.number,
                       .quantity = quantity,
                       .row = row,
                       .slot = slot,
                       .position = playing.input.positions[playing.input.outputs[row].token_index],
                       .wanted = wanted,
                       .got = got};
    return true;
  }

  template <class Copy, class Use>
  Status copy(const StepLogRecord& record, const Use& use) {
    ZRT_TRY(const auto pairs, decode_copies(record));
    std::vector<Copy> copies;
    for (const auto& [from, to] : pairs) copies.push_back({from, to});
    if (auto status = use(std::span<const Copy>(copies)); !status)
      return std::unexpected(of_step(replay_.n_steps, std::move(status).error()));
    return {};
  }

  Status write_pages(const StepLogRecord& record) {
    ZRT_TRY(const auto written, decode_written_pages(record));
    if (log_.header.tier != executor_.info().tier)
      return fail(StatusCode::kUnavailable,
                  "[step_log] after step {} a saved prefix of {} pages was loaded, whose bytes are those of tier {}; "
                  "this one is {}",
                  replay_.n_steps, written.pages.size(), log_.header.tier, executor_.info().tier);
    if (auto status = executor_.write_pages(written.pages, written.bytes); !status)
      return std::unexpected(of_step(replay_.n_steps, std::move(status).error()));
    return {};
  }

  const StepLog& log_;
  Executor& executor_;
  StepDecoder decoder_;
  Partners partners_;
  // The steps that run, at most two: the first is playing_[first_playing_].
  Playing playing_[2];
  std::uint32_t first_playing_ = 0, n_playing_ = 0;
  std::uint32_t n_ended_early_ = 0;  // steps that ended before their kFinish in the log
  std::uint32_t n_foreign_rows_ = 0;
  std::vector<std::int32_t> last_picks_;  // index: slot; the pick in the log
  StepOutput output_;
  StepReplay replay_;
};

}  // namespace

Result<ExecutorOptions> replay_options(const StepLogHeader& header) {
  ExecutorOptions options;
  options.max_slots = header.max_slots;
  options.kv_pages = header.n_pages;
  options.max_context = header.max_context;
  options.chunk_cap = header.chunk_cap;
  options.state_checkpoints = header.state_checkpoints;
  options.state_guesses = header.state_guesses;
  options.fusion = header.fusion;
  options.kv_type = find_kv_type(header.kv_dtype);
  if (options.kv_type == nullptr)
    return fail(StatusCode::kCorrupt, "[step_log] the log's kv_dtype is \"{}\", which this program does not know",
                header.kv_dtype);
  ZRT_TRY(options.activations, known_setting("activations", header.activations, find_activations(header.activations)));
  ZRT_TRY(options.arithmetic, known_setting("arithmetic", header.arithmetic, find_arithmetic(header.arithmetic)));
  ZRT_TRY(options.pooling, known_setting("pooling", header.pooling, find_pooling(header.pooling)));
  return options;
}

Status check_replay(const StepLogHeader& header, const Executor& executor) {
  const ExecutorInfo& info = executor.info();
  if (const auto found = fingerprint(executor.weights()); found != header.fingerprint)
    return fail(StatusCode::kInvalidArgument,
                "[step_log] the log is of model {} ({}, {} bytes), {} is another one ({}, {} bytes)", header.model_name,
                header.fingerprint, header.model_bytes, executor.weights().path(), found,
                executor.weights().total_bytes());
  const auto refuse_setting = [&](std::string_view key, const auto& wanted, const auto& got) -> Status {
    return fail(StatusCode::kUnavailable, "[step_log] {} was {} in the log, tier {} has {} here", key, wanted,
                info.tier, got);
  };
  for (const auto& [key, wanted, got] :
       {std::tuple<std::string_view, std::string, std::string>{"kv_dtype", header.kv_dtype, info.kv_dtype},
        {"pooling", header.pooling, std::string(to_string(info.pooling))},
        {"activations", header.activations, std::string(to_string(info.activations))},
        {"arithmetic", header.arithmetic, std::string(to_string(info.arithmetic))}})
    if (wanted != got) return refuse_setting(key, wanted, got);
  if (info.max_slots != header.max_slots) return refuse_setting("max_slots", header.max_slots, info.max_slots);
  if (executor.config().vocab_size != header.vocab_size)
    return refuse_setting("vocab_size", header.vocab_size, executor.config().vocab_size);
  const std::uint32_t checkpoints = header.state_checkpoints > 0 ? info.n_state_checkpoints : 0;
  for (const auto& [key, wanted, got] :
       {std::tuple<std::string_view, std::uint32_t, std::uint32_t>{"max_context", header.max_context, info.max_context},
        {"n_pages", header.n_pages, info.n_pages},
        {"chunk_cap", header.chunk_cap, info.chunk_cap},
        {"state_checkpoints", header.state_checkpoints, checkpoints},
        {"state_guesses", header.state_guesses, info.state_guesses}})
    if (got < wanted) return refuse_setting(key, wanted, got);
  return {};
}

std::string to_string(const StepDifference& d) {
  const auto value = [&](std::uint64_t v) {
    return d.quantity == StepDifference::Quantity::kPick
               ? fmt::format("{}", static_cast<std::int32_t>(static_cast<std::uint32_t>(v)))
               : fmt::format("{:016x}", v);
  };
  constexpr std::string_view kNames[] = {"the pick", "the hash of the logits", "the hash of the embedding"};
  return fmt::format("step {}, row {} (slot {}, position {}): {} is {}, {} wanted", d.step, d.row, d.slot, d.position,
                     kNames[static_cast<std::size_t>(d.quantity)], value(d.got), value(d.wanted));
}

Result<StepReplay> replay_steps(const StepLog& log, Executor& executor,
                                const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
  return StepPlayer(log, executor).play(on_progress);
}

}  // namespace zinc_rt
