// Encodes and decodes the contents of the records kBegin and kFinish of a step log (step_log.h).
//
// Page tables and histories of a slot change little from step to step. So both sides remember each slot's last ones, and
// a record has only what is new: how many of the remembered entries still hold, and the entries after them.
//
// kBegin:  u32 n_tokens, n_tables, n_rows, flags (1: begun ahead, 2: with token types, 4: with runs)
//          i32 token_ids[n_tokens], positions[n_tokens], slots[n_tokens], token_types[n_tokens] if flag 2
//          u32 n_runs, n_runs x SlotRun if flag 4
//          n_tables x: u32 slot, rope_variant, n_kept, n_new; u32 pages[n_new]
//          n_rows x: RowHead; i32 history[n_new_history]; pairs (i32 id, f32 bias)[n_bias] and i32 banned[n_banned]
//          unless the row shares the lists of the row before it
// kFinish: items, each of them u32 kind, row, n, zero, and n words (StepItem)
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/step.h"
#include "executor/step_log.h"

namespace zinc_rt {

// All histories in one step may have this many tokens together, so that a small hostile file cannot take all memory.
inline constexpr std::uint64_t kMostLoggedHistory = std::uint64_t{1} << 26;

// What is known of a slot from the records before.
struct SlotMemory {
  std::vector<std::uint32_t> pages;
  std::vector<std::int32_t> history;
  std::uint64_t last_record = 0;  // number of the last record, or step, with the slot, from 1 on
};

class StepEncoder {
 public:
  explicit StepEncoder(std::uint32_t max_slots) : slots_(max_slots) {}
  // Returns whether a record can have the step. Executors refuse nearly all steps that no record can have.
  bool can_encode(const StepInput& input);
  // Appends the content of the record. Nothing is allocated once `to` and the slots' memories have grown.
  // REQUIRES: can_encode(input).
  void encode(const StepInput& input, bool is_ahead, std::vector<std::byte>& to);

 private:
  std::vector<SlotMemory> slots_;
  std::uint64_t n_checks_ = 0;
};

// A decoded kBegin. The spans of its output rows point into the object; reuse one object for many records.
struct RecordedStep {
  struct Table {
    std::uint32_t slot = 0, rope_variant = 0;
    std::size_t begin = 0, n = 0;  // among `pages`
  };
  bool is_ahead = false;
  std::vector<std::int32_t> token_ids, positions, slots, token_types;
  std::vector<SlotRun> runs;
  std::vector<Table> tables;  // one per slot in the step
  std::vector<std::uint32_t> pages;
  std::vector<OutputRow> outputs;
  // Memory of the output rows' spans.
  std::vector<std::int32_t> histories, banned;
  std::vector<TokenBias> biases;
};

class RecordReader;  // of step_codec.cpp

class StepDecoder {
 public:
  explicit StepDecoder(const StepLogHeader& header) : slots_(header.max_slots) {}
  // Decodes a kBegin. Call it for all of a log's records of this kind, in order. Errors: kCorrupt, with the place in the
  // file and both numbers; the decoder must then not be used again.
  Status decode(const StepLogRecord& record, RecordedStep& step);

 private:
  void take_tables(RecordReader& in, std::uint32_t n, RecordedStep& step);
  void take_rows(RecordReader& in, std::uint32_t n, RecordedStep& step);

  std::vector<SlotMemory> slots_;
  std::uint64_t n_records_ = 0;
};

enum class StepItem : std::uint32_t {
  kMask,     // the words that StepInput::mask returned for the row
  kChanged,  // the row's logits as StepInput::process left them
  kHash,     // hash_of_row() of the row's logits or embedding, as two words
  kPicks,    // the step's picks; row is 0
  kFailed,   // the message of the error with which the step ended, padded with zeros; row is 0
};
inline constexpr std::uint32_t kStepItems = 5;

// Appends an item to the content of a kFinish.
void put_item(StepItem item, std::uint32_t row, std::span<const std::byte> bytes, std::vector<std::byte>& to);

// A decoded kFinish; reuse one object for many records.
struct RecordedFinish {
  struct Part {
    std::uint32_t row = 0;
    std::size_t begin = 0, n = 0;  // among `words`
  };
  struct Hash {
    std::uint32_t row = 0;
    std::uint64_t value = 0;
  };
  std::vector<Part> masks, changed;
  std::vector<std::uint32_t> words;
  std::vector<Hash> hashes;
  std::vector<std::int32_t> picks;
  bool has_failed = false;
  std::string failure;

  // Returns the words of the row's mask, or of its changed logits; empty if it has none.
  std::span<const std::uint32_t> mask_of(std::uint32_t row) const { return words_of(masks, row); }
  std::span<const std::uint32_t> changed_of(std::uint32_t row) const { return words_of(changed, row); }
  bool has_hash(std::uint32_t row) const;
  void clear();

 private:
  std::span<const std::uint32_t> words_of(const std::vector<Part>& parts, std::uint32_t row) const;
};

// Errors: kCorrupt, with the place in the file and both numbers.
Status decode_finish(const StepLogRecord& record, RecordedFinish& finish);

// Decoded records of the other kinds. Errors: kCorrupt.
struct WrittenPages {
  std::vector<std::uint32_t> pages;
  std::span<const std::byte> bytes;
};
Result<WrittenPages> decode_written_pages(const StepLogRecord& record);
Result<std::vector<std::pair<std::uint32_t, std::uint32_t>>> decode_copies(const StepLogRecord& record);

}  // namespace zinc_rt
