// Runs a batch from a file to a file, without a server: no port, no tenants, nothing kept.
// Thread rule: one thread; `show` is called on it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/batches/batch_run.h"
#include "server/models/models.h"

namespace zinc_rt::server {

struct OfflineBatch {
  ModelSpec model;
  std::string input, output, errors;  // files, as in BatchRun::Plan
  // Called now and then, with what has been done so far.
  std::function<void(const BatchCounts& counts, std::uint64_t total)> show;
};

struct OfflineResult {
  BatchCounts counts, before;  // before: of earlier runs, which counts has too
  std::uint64_t total = 0;
};

// Checks the lines, loads the model, and runs what earlier runs have not done. Errors: kInvalidArgument with the wrong
// lines, before the model is loaded; those of the engine, of BatchRun::open and of the files.
Result<OfflineResult> run_batch_offline(const OfflineBatch& batch);

}  // namespace zinc_rt::server
