#include "executor/step_log_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.h"
#include "executor/step_codec.h"

namespace zinc_rt {
namespace {

// Returns a text from the log in a form that no terminal takes for a command.
std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; }, '?');
  return text;
}

// Appends, for each slot, its tokens and the position of the first one: "slot 2 at 17: 5 9 12".
void put_tokens(const RecordedStep& step, std::string& text) {
  const bool has_forms = step.positions.size() == step.token_ids.size() && step.slots.size() == step.token_ids.size();
  for (std::size_t i = 0; i < step.token_ids.size() && has_forms; ++i) {
    const bool is_new = i == 0 || step.slots[i] != step.slots[i - 1];
    if (is_new) fmt::format_to(std::back_inserter(text), "; slot {} at {}:", step.slots[i], step.positions[i]);
    if (step.token_ids[i] == kLastPick)
      text += " last-pick";
    else
      fmt::format_to(std::back_inserter(text), " {}", step.token_ids[i]);
  }
}

void put_run(const SlotRun& run, std::string& text) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "; slot {} replays {} guesses and has {}", run.slot, run.n_replayed, run.n_guessed);
  if (run.save_at > 0) fmt::format_to(out, ", its state after {} tokens goes to entry {}", run.save_at, run.save_to);
}

// Appends the settings of an output row that are not the defaults.
void put_row(const OutputRow& row, std::string& text) {
  auto out = std::back_inserter(text);
  const SamplingParams none, &s = row.sampling;
  fmt::format_to(out, "; pick after token {}", row.token_index);
  const auto put = [&](std::string_view name, auto value, auto usual) {
    if (value != usual) fmt::format_to(out, ", {} {}", name, value);
  };
  put("temperature", s.temperature, none.temperature);
  put("top_k", s.top_k, none.top_k);
  put("top_p", s.top_p, none.top_p);
  put("min_p", s.min_p, none.min_p);
  put("typical_p", s.typical_p, none.typical_p);
  put("repetition_penalty", s.repetition_penalty, none.repetition_penalty);
  put("presence_penalty", s.presence_penalty, none.presence_penalty);
  put("frequency_penalty", s.frequency_penalty, none.frequency_penalty);
  if (s.temperature != 0) put("seed", row.sampling.seed, std::uint64_t{0});
  put("history of", row.history.size(), std::size_t{0});
  put("biased", row.bias.size(), std::size_t{0});
  put("banned", row.banned.size(), std::size_t{0});
  if (row.n_logprobs) put("logprobs", *row.n_logprobs, UINT32_MAX);
  if (row.is_masked) text += ", masked";
  if (row.is_processed) text += ", processed";
}

void put_finish(const RecordedFinish& finish, std::string& text) {
  auto out = std::back_inserter(text);
  if (finish.has_failed) fmt::format_to(out, " failed: {}", printable(finish.failure));
  if (!finish.picks.empty()) fmt::format_to(out, " picks {}", fmt::join(finish.picks, " "));
  for (const RecordedFinish::Part& mask : finish.masks) {
    std::uint64_t n = 0;
    for (const std::uint32_t word : finish.mask_of(mask.row)) n += static_cast<std::uint64_t>(std::popcount(word));
    fmt::format_to(out, "; row {}: mask of {} words allows {}", mask.row, mask.n, n);
  }
  for (const RecordedFinish::Part& row : finish.changed)
    fmt::format_to(out, "; row {}: {} logits were processed", row.row, row.n);
  for (const RecordedFinish::Hash& hash : finish.hashes)
    fmt::format_to(out, "; row {}: hash {:016x}", hash.row, hash.value);
}

}  // namespace

Status describe_step_log(const StepLog& log, const std::function<void(std::string_view line)>& line) {
  line(to_json(log.header));
  StepDecoder decoder(log.header);
  RecordedStep step;
  RecordedFinish finish;
  std::uint64_t n_begun = 0, n_finished = 0;
  for (std::size_t i = 0; i < log.records.size(); ++i) {
    const StepLogRecord& record = log.records[i];
    const bool is_refused = i + 1 < log.records.size() && log.records[i + 1].kind == StepLogKind::kRefused;
    std::string text;
    switch (record.kind) {
      case StepLogKind::kBegin:
        ZRT_CHECK_OK(decoder.decode(record, step));
        // A refused step has no number, because it has no end either.
        text = is_refused ? "step" : fmt::format("step {}", ++n_begun);
        fmt::format_to(std::back_inserter(text), " begins{}, {} tokens", step.is_ahead ? " ahead" : "",
                       step.token_ids.size());
        put_tokens(step, text);
        for (const SlotRun& run : step.runs) put_run(run, text);
        for (const OutputRow& row : step.outputs) put_row(row, text);
        break;
      case StepLogKind::kFinish:
        ZRT_CHECK_OK(decode_finish(record, finish));
        text = fmt::format("step {} ends:", ++n_finished);
        put_finish(finish, text);
        break;
      case StepLogKind::kCopyState:
      case StepLogKind::kCopyPages: {
        ZRT_TRY(const auto pairs, decode_copies(record));
        text = record.kind == StepLogKind::kCopyState ? "copies of states:" : "copies of pages:";
        for (const auto& [from, to] : pairs) fmt::format_to(std::back_inserter(text), " {} to {}", from, to);
        break;
      }
      case StepLogKind::kWritePages: {
        ZRT_TRY(const auto written, decode_written_pages(record));
        text = fmt::format("{} bytes are written to pages {}", written.bytes.size(), fmt::join(written.pages, " "));
        break;
      }
      case StepLogKind::kRefused:
        text = "refused: " + printable({reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size()});
        break;
      case StepLogKind::kHeader: break;
    }
    line(text);
  }
  if (log.n_cut_bytes > 0)
    line(fmt::format("{} bytes of an incomplete record at the end are left out", log.n_cut_bytes));
  return {};
}

}  // namespace zinc_rt
