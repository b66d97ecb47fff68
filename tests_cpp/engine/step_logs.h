// Engines whose steps are recorded, and the logs of their executors.
#pragma once

#include "schedule.h"
#include "tests_cpp/executor/step_log_files.h"

namespace zinc_rt {

// The log that recorded_on_ring() writes, and how; set before an engine starts.
struct RecordingPlan {
  std::string path;
  bool has_all_logits = false;
};
inline RecordingPlan recording_plan;

inline std::unique_ptr<Executor> recorded_on_ring(const std::string& model, const ExecutorOptions& options) {
  return recording(open(model, options), recording_plan.path, recording_plan.has_all_logits);
}

}  // namespace zinc_rt
