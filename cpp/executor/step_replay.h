// Runs a step log (step_log.h) again and compares the results.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "executor/step_log.h"

namespace zinc_rt {

// Returns the options by which an executor has the settings of the log: the numbers of slots, pages and tokens, and all
// that changes bits. Tier, device and threads are left as they are. Errors: kCorrupt if the log names a setting that
// does not exist.
Result<ExecutorOptions> replay_options(const StepLogHeader& header);
// Checks that an executor computes the log's bits. Errors: kInvalidArgument for another model, kUnavailable for a
// setting that the executor does not have; the message has both values.
Status check_replay(const StepLogHeader& header, const Executor& executor);

struct StepDifference {
  enum class Quantity : std::uint8_t { kPick, kLogits, kEmbedding };
  std::uint64_t step = 0;  // number of the step, from 1 on
  Quantity quantity = Quantity::kPick;
  std::uint32_t row = 0;              // index of the output row in the step
  std::int32_t slot = 0;              // of the token that the row follows
  std::int32_t position = 0;          // of the same token
  std::uint64_t wanted = 0, got = 0;  // token ids, or hashes
};
std::string to_string(const StepDifference& difference);

struct StepReplay {
  std::uint64_t n_steps = 0, n_tokens = 0;
  std::uint64_t n_picks = 0, n_hashes = 0;  // that were compared
  // Output rows after the first one of their slot in a step; they verify guesses or score a prompt.
  std::uint64_t n_further_rows = 0;
  // Steps without results in the log: those that failed when they were recorded, and those that its end cuts off.
  std::uint64_t n_without_results = 0;
  std::uint64_t n_differences = 0;
  std::optional<StepDifference> first;
};

// Runs all records of the log, in their order. A step begins while another one runs if it did when it was recorded and
// the executor can run ahead. If the executor cannot, the running step is ended first, and the tokens that the host did
// not know are taken from the log's picks. on_progress may be empty; it gets bytes of the log. Errors: those of the
// executor for steps and copies, with the step's number; kCorrupt; kUnavailable for pages that another tier wrote.
Result<StepReplay> replay_steps(const StepLog& log, Executor& executor,
                                const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress = {});

}  // namespace zinc_rt
