// Runs a batch from file to file without a server (`zinc-rt run-batch`): it opens no port, has no tenants and stores no
// state.
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
  std::string input, output, errors;  // paths, as in BatchRun::Plan
  // Called periodically with the counts so far and the number of all lines.
  std::function<void(const BatchCounts& counts, std::uint64_t total)> show;
};

struct OfflineResult {
  BatchCounts counts, before;  // `before`: lines that earlier runs have finished; `counts` includes these lines
  std::uint64_t total = 0;
};

// Checks the lines, loads the model, and runs the lines that earlier runs have not done. Errors: kInvalidArgument, with
// a list of the wrong lines, before the model is loaded; those of the engine, of BatchRun::open and of the files.
Result<OfflineResult> run_batch_offline(const OfflineBatch& batch);

}  // namespace zinc_rt::server
