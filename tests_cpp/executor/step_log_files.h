// Step logs in files of their own, recorded and played by tests.
#pragma once

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "executor/recording_executor.h"
#include "executor/registry.h"
#include "executor/step_replay.h"
#include "model_fixture.h"

namespace zinc_rt {

// A file name that nobody else has; the file goes with the object.
class LogFile {
 public:
  LogFile()
      : path_((std::filesystem::temp_directory_path() /
               ("zrt_step_log_" + std::to_string(::getpid()) + "_" + std::to_string(n_made_++)))
                  .string()) {}
  ~LogFile() { std::filesystem::remove(path_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::byte> bytes() const {
    std::ifstream file(path_, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const auto all = std::as_bytes(std::span(text));
    return {all.begin(), all.end()};
  }

 private:
  static inline std::atomic<int> n_made_{0};
  std::string path_;
};

inline std::unique_ptr<Executor> recording(std::unique_ptr<Executor> inner, const std::string& path,
                                           bool has_all_logits) {
  auto executor = RecordingExecutor::create(std::move(inner), path, has_all_logits);
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

inline StepLog read_log(std::span<const std::byte> bytes) {
  auto log = read_step_log(bytes);
  if (!log) throw std::runtime_error(log.error().message);
  return std::move(*log);
}

// Opens the log's model with the log's settings and plays it. `set` may change the options.
template <class Set>
Result<StepReplay> play_log(std::span<const std::byte> bytes, const Set& set) {
  const StepLog log = read_log(bytes);
  auto options = replay_options(log.header);
  if (!options) return std::unexpected(options.error());
  options->tier = "t_cpu";
  options->threads = 2;
  set(*options);
  auto executor = open_executor(log.header.model, *options);
  if (!executor) return std::unexpected(executor.error());
  if (auto status = check_replay(log.header, **executor); !status) return std::unexpected(status.error());
  return replay_steps(log, **executor);
}
inline Result<StepReplay> play_log(std::span<const std::byte> bytes) {
  return play_log(bytes, [](ExecutorOptions&) {});
}

inline void expect_equal(const Result<StepReplay>& replay) {
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ(replay->n_differences, 0u) << (replay->first ? to_string(*replay->first) : "");
}

}  // namespace zinc_rt
