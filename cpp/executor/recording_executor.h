// RecordingExecutor passes all calls to another executor and writes them to a step log (step_log.h).
// Thread rule: one thread at a time, as for Executor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "executor/executor.h"
#include "executor/step_codec.h"

namespace zinc_rt {

// Writes the records. An error, such as a full disk, is logged once and ends the recording, and never a step; the file
// then has all records before it. Nothing is allocated once the buffers have grown.
class StepLogWriter {
 public:
  // Creates the file, which only its owner may read. Its name is path + ".part" until the writer is destroyed.
  static Result<std::unique_ptr<StepLogWriter>> create(const std::string& path, const StepLogHeader& header);
  StepLogWriter(const StepLogWriter&) = delete;
  StepLogWriter& operator=(const StepLogWriter&) = delete;
  ~StepLogWriter();

  // Returns whether the step was recorded. If not, nothing of it may be added.
  bool begin(const StepInput& input, bool is_ahead);
  // Adds an item of the next kFinish.
  void add(StepItem item, std::uint32_t row, std::span<const std::byte> bytes);
  void finish();
  template <class Copy>
  void copy(StepLogKind kind, std::span<const Copy> copies);
  void write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> bytes);
  void refuse(const Error& error);  // the call that was recorded last has failed
  void stop(std::string_view why);  // ends the recording

 private:
  StepLogWriter(OutputFile file, std::uint32_t max_slots) : file_(std::move(file)), encoder_(max_slots) {}
  // Returns a buffer for a record, which has room for its head and nothing else.
  std::vector<std::byte>& start();
  // Writes the buffer as a record, and `more` behind it.
  void write(StepLogKind kind, std::vector<std::byte>& record, std::span<const std::byte> more = {});
  // Calls fill() unless the recording has ended. It ends if fill() runs out of memory.
  template <class Fill>
  void attempt(const Fill& fill);

  OutputFile file_;
  bool is_stopped_ = false;
  StepEncoder encoder_;
  std::vector<std::byte> record_, items_;  // items_ has room for a head in front, too
};

class RecordingExecutor final : public Executor {
 public:
  // has_all_logits: the logits of all output rows are read and hashed. The steps then cannot run ahead, and the caller
  // computes logprobs from logits. Otherwise only the rows that the caller wants are hashed, and nothing is read for the
  // log. Embeddings are always hashed.
  static Result<std::unique_ptr<Executor>> create(std::unique_ptr<Executor> inner, const std::string& path,
                                                  bool has_all_logits);

  const ExecutorInfo& info() const override { return info_; }
  const ModelConfig& config() const override { return inner_->config(); }
  const Weights& weights() const override { return inner_->weights(); }
  const MemoryPlan& plan() const override { return inner_->plan(); }
  RingExecutor* ring_executor() override { return inner_->ring_executor(); }
  std::uint64_t allocated_bytes() const override { return inner_->allocated_bytes(); }
  Status begin(const StepInput& input) override;
  Status finish(StepOutput& output) override;
  Status copy_state(std::span<const StateCopy> copies) override;
  Status copy_pages(std::span<const PageCopy> copies) override;
  Status read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) override {
    return inner_->read_pages(pages, to);
  }
  Status write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) override;
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override { return inner_->rope_variant(n_tokens); }
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override { return inner_->hidden(input, layer); }

 private:
  // A step that has begun. `input` is what the inner executor got: the caller's input with functions that record.
  struct Running {
    const StepInput* caller = nullptr;
    StepInput input;
    bool is_recorded = false;
  };

  RecordingExecutor(std::unique_ptr<Executor> inner, std::unique_ptr<StepLogWriter> writer, bool has_all_logits);
  void add(StepItem item, std::uint32_t row, std::span<const std::byte> bytes);
  void add_hashes(std::uint32_t first, std::span<const float> rows, std::size_t width);
  void give_logits(std::uint32_t first, std::span<const float> logits);
  Status after(Status status);

  std::unique_ptr<Executor> inner_;
  ExecutorInfo info_;
  bool has_all_logits_ = false;
  std::unique_ptr<StepLogWriter> writer_;
  // The steps that run, at most two: the first is running_[first_running_]. finish() calls the functions of this one.
  Running running_[2];
  std::uint32_t first_running_ = 0, n_running_ = 0;
  // The functions that running_[i].input gets where the caller has one.
  StepInput functions_;
};

}  // namespace zinc_rt
