// A step log records what was asked of an executor and what it answered: the inputs of all steps, the copies, the picks,
// and hashes of logits. step_replay.h runs a log again, on any tier, and compares. The log contains users' texts as
// token ids, so its file belongs to its owner alone.
//
// Format, little endian: the 8 bytes kStepLogMagic, then records. A record is a head (u32 kind, u32 zero, u64 n_bytes)
// and n_bytes of content. A log that was cut, for example by a crash, is read up to its last whole record.
//   kHeader      the members of StepLogHeader as a JSON object; only as the first record
//   kBegin       the StepInput of a begin() (step_codec.h)
//   kFinish      items: what the caller's functions returned in finish(), and its results (step_codec.h)
//   kCopyState   pairs (u32 from, u32 to) of a copy_state()
//   kCopyPages   pairs (u32 from, u32 to) of a copy_pages()
//   kWritePages  u32 n, n page numbers, then the bytes of the pages, of a write_pages()
//   kRefused     the message of an error: the call of the record before it failed
// The records are in the order of the calls. read_pages() and hidden() are not recorded: the first writes nothing, and
// no later step reads what the second writes.
// Thread rule: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt {

inline constexpr std::string_view kStepLogMagic = "ZRTSTEP1";

// What must be the same to compute the same bits, and where the log comes from. Each member is a key of the JSON object,
// which also has a "version". Missing keys mean the defaults.
struct StepLogHeader {
  std::string model;        // path of the model file or folder
  std::string model_name;   // for display
  std::string fingerprint;  // of the model's content (model/fingerprint.h)
  std::uint64_t model_bytes = 0;
  std::string build;  // version of the program
  std::uint32_t arithmetic_version = 0;
  std::string tier, device;
  // Settings of the executor (executor.h), as they were and not as they were asked for.
  std::string kv_dtype, pooling, activations, arithmetic, fusion;
  std::uint32_t max_slots = 0, max_context = 0, n_pages = 0, chunk_cap = 0;
  // 0 if the model has no recurrent state.
  std::uint32_t state_checkpoints = 0, state_guesses = 0;
  std::uint32_t vocab_size = 0;
  bool has_all_logits = false;  // each output row has a hash, not only those whose logits the caller wanted
};

enum class StepLogKind : std::uint32_t { kHeader, kBegin, kFinish, kCopyState, kCopyPages, kWritePages, kRefused };
inline constexpr std::uint32_t kStepLogKinds = 7;
std::string_view to_string(StepLogKind kind);

struct StepLogRecord {
  StepLogKind kind = StepLogKind::kHeader;
  std::uint64_t offset = 0;  // of the record's content in the file
  std::span<const std::byte> bytes;
};

struct StepLog {
  StepLogHeader header;
  std::vector<StepLogRecord> records;  // without the header
  std::uint64_t n_bytes = 0;           // of the file
  std::uint64_t n_cut_bytes = 0;       // bytes of an incomplete record at the end
};

// The first bytes of each record.
struct StepLogHead {
  std::uint32_t kind = 0, zero = 0;
  std::uint64_t n_bytes = 0;
};
static_assert(sizeof(StepLogHead) == 16);

// Returns whether a file begins as a step log does.
bool is_step_log(std::span<const std::byte> bytes);
// Finds the records of a log, whose bytes must outlive the result. Errors: kCorrupt if the file is no step log, or a
// record has an unknown kind or a size that no record can have; kUnavailable if it has another version.
Result<StepLog> read_step_log(std::span<const std::byte> bytes);
std::string to_json(const StepLogHeader& header);

// XXH3-64 of the bytes of a row of logits or of an embedding, as Completion::logits_hashes has it.
std::uint64_t hash_of_row(std::span<const float> row);

}  // namespace zinc_rt
