// Runs the lines of one batch, several at once, and appends each result to a file. So a run that was killed can
// continue where it stopped.
// Thread rule: open() first; then step() by one thread at a time, the rest by any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/batches/batch_lines.h"
#include "server/batches/inner_call.h"
#include "server/batches/line_file.h"

namespace zinc_rt::server {

struct BatchCounts {
  std::uint64_t completed = 0, failed = 0;
  BatchUsage usage;  // of the completed ones
};

// The reason why a batch ends before all of its lines have run.
enum class BatchEnding : std::uint8_t { kNone, kCancelled, kExpired, kFull };

class BatchRun : public std::enable_shared_from_this<BatchRun> {
 public:
  struct Plan {
    std::string input, output, errors;  // files; those that failed go to `errors`
    std::string endpoint;               // as read_batch_line wants it
    std::shared_ptr<TenantEntry> tenant;
    // Called with the bytes of output and errors so far. If it returns false there is no room for more, and the
    // remaining lines are not run. Null: no limit.
    std::function<bool(std::uint64_t n_bytes)> has_room;
    std::function<void()> wake;                // step() has work; called from any thread, must not block
    FileAccess access = FileAccess::kByUmask;  // of output and errors
  };
  // Finds out what earlier runs have done. REQUIRES: check_batch_file found no error in `input`; core and router
  // outlive the run. Errors: those of the files; kInvalidArgument if the output does not belong to this input.
  static Result<std::shared_ptr<BatchRun>> open(ServerCore& core, const Router& router, Plan plan);

  // Writes the answers that have come and starts lines while there is room. Does not wait. Call it on each wake, and
  // now and then, because refused lines are tried again. Returns true when nothing is left to do.
  bool step();
  // Stops the run. Lines that have not ended are not run but written as failed, with the reason. The first reason
  // counts.
  void end_early(BatchEnding why);
  // Starts no more lines, cancels running ones, and drops their answers. A later run runs them again.
  void abandon();
  // Call it after step() has returned true. When it returns, everything is on disk.
  Status sync();

  BatchCounts counts() const;
  std::uint32_t n_under_way() const { return n_under_way_; }  // with those whose answer is to be written yet
  BatchEnding ending() const { return ending_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answered {
    std::uint64_t number;  // of the call
    HttpResponse answer;
  };
  struct UnderWay {
    BatchLine line;
    std::weak_ptr<InnerCall> call;
  };

  BatchRun(ServerCore& core, const Router& router, Plan plan);
  Status open_files();
  Status check_is_ours();
  void take_answers();
  bool write_rest();
  void start_lines();
  void start(BatchLine line);
  void cancel_lines();
  bool next_line(BatchLine& line);
  std::uint32_t window() const;
  // False: it was not written.
  bool put(bool is_failed, const std::string& custom_id, const std::string& text, const BatchUsage& usage = {});
  void pause(double seconds);

  ServerCore& core_;
  const Router& router_;
  const Plan plan_;
  BatchReader input_;
  LineFile output_, errors_;
  std::unordered_set<std::string> done_;  // the custom_ids that are written
  std::deque<BatchLine> waiting_;         // were refused for the moment
  std::deque<std::pair<BatchLine, HttpResponse>> unwritten_;
  std::unordered_map<std::uint64_t, UnderWay> under_way_;  // by number; under mutex_
  std::uint64_t n_started_ = 0;
  std::uint64_t told_at_bytes_ = 0;  // when plan_.has_room is told again
  bool is_read_ = false, has_complained_ = false;
  Clock::time_point paused_until_{};

  std::atomic<std::uint64_t> n_completed_{0}, n_failed_{0};
  std::atomic<std::uint32_t> n_under_way_{0};
  std::atomic<BatchEnding> ending_{BatchEnding::kNone};
  std::atomic<bool> is_abandoned_{false}, drops_{false};  // drops_: answers are of calls that were cancelled
  mutable std::mutex mutex_;
  std::vector<Answered> inbox_;
  BatchUsage usage_;
};

}  // namespace zinc_rt::server
