// BatchRun runs the lines of one batch, several at once. It appends each result to a file, so that a later run can
// continue after a kill.
// Thread rule: call open() first. Then step() may be called by one thread at a time, and the other members by any
// thread.
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

// BatchCounts tells how many lines of a batch have been done.
struct BatchCounts {
  std::uint64_t completed = 0, failed = 0;
  BatchUsage usage;  // the token counts of all completed lines together
};

// BatchEnding is the reason for which a batch ends before all of its lines have run.
enum class BatchEnding : std::uint8_t { kNone, kCancelled, kExpired, kFull };

class BatchRun : public std::enable_shared_from_this<BatchRun> {
 public:
  struct Plan {
    std::string input, output, errors;  // paths of files; the results of failed lines go to `errors`
    // The path that all lines must name; empty: each line may name any of kBatchPaths.
    std::string endpoint;
    std::shared_ptr<TenantEntry> tenant;
    // Called with the total bytes of output and errors so far. If it returns false, the tenant has no room for more and
    // the remaining lines are not run. Null: no limit.
    std::function<bool(std::uint64_t n_bytes)> has_room;
    std::function<void()> wake;                // called from any thread if step() has work; must not block
    FileAccess access = FileAccess::kByUmask;  // who may read the files `output` and `errors`
  };
  // Reads which lines earlier runs have finished. REQUIRES: check_batch_file found no error in `input`; core and router
  // outlive the run. Errors: those of the files; kInvalidArgument if the output does not belong to this input.
  static Result<std::shared_ptr<BatchRun>> open(ServerCore& core, const Router& router, Plan plan);

  // Writes the answers that have arrived and starts lines while the tenant's limits allow it. Does not wait. Call it
  // after each wake() and periodically, because lines that were refused for the moment are tried again. Returns true
  // when all lines are done.
  bool step();
  // Ends the run. Each line that has not ended is written as failed, with the reason. If called twice, the first reason
  // counts.
  void end_early(BatchEnding why);
  // Starts no more lines, cancels running lines, and drops their answers. A later run runs these lines again.
  void abandon();
  // Writes all results to disk before it returns. Call it after step() has returned true.
  Status sync();

  BatchCounts counts() const;
  // Returns how many lines run, or have an answer that is not written yet.
  std::uint32_t n_under_way() const { return n_under_way_; }
  BatchEnding ending() const { return ending_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answered {
    std::uint64_t number;  // number of the call, which is its key in under_way_
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
  // Appends a result line. Returns false if it could not be written.
  bool put(bool is_failed, const std::string& custom_id, const std::string& text, const BatchUsage& usage = {});
  void pause(double seconds);

  ServerCore& core_;
  const Router& router_;
  const Plan plan_;
  BatchReader input_;
  LineFile output_, errors_;
  std::unordered_set<std::string> done_;  // custom_ids whose result is in a file
  // Lines that the engine refused for now, because a queue or limit was full. step() tries them again.
  std::deque<BatchLine> waiting_;
  // Answers that could not be written to a file yet. step() tries again.
  std::deque<std::pair<BatchLine, HttpResponse>> unwritten_;
  std::unordered_map<std::uint64_t, UnderWay> under_way_;  // key: number; guarded by mutex_
  std::uint64_t n_started_ = 0;
  std::uint64_t told_at_bytes_ = 0;  // when the output file has this many bytes, plan_.has_room is called again
  // is_read_: all lines of the input were read. has_complained_: the log has the error of the last failed write.
  bool is_read_ = false, has_complained_ = false;
  Clock::time_point paused_until_{};

  std::atomic<std::uint64_t> n_completed_{0}, n_failed_{0};
  std::atomic<std::uint32_t> n_under_way_{0};
  std::atomic<BatchEnding> ending_{BatchEnding::kNone};
  // If drops_ is true, answers are ignored, because the calls were cancelled.
  std::atomic<bool> is_abandoned_{false}, drops_{false};
  mutable std::mutex mutex_;
  // Answers that calls have received since step() last took them. Guarded by mutex_.
  std::vector<Answered> inbox_;
  BatchUsage usage_;
};

}  // namespace zinc_rt::server
