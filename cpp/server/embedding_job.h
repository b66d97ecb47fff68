// EmbeddingJob is one API call for embeddings or scores. It submits its inputs to the engine as requests, a few at a
// time, so that a call with thousands of inputs does not fill the queue. When all inputs have ended, it sends the
// answer and writes the call's row in the ledger.
// Thread rule: call start() once. The engine's drainer, the work queues and the I/O threads call the other members.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "server/embedding_task.h"
#include "server/metrics.h"
#include "server/state/state_store.h"
#include "server/tenants/tenants.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// EmbeddingServices are the parts of the server that embedding jobs use. They must outlive every job.
struct EmbeddingServices {
  StateStore& store;
  Metrics& metrics;
  WorkQueue& work;  // runs tokenization and submission, fairly between tenants
  WorkQueue& ends;
  std::atomic<std::uint32_t>& n_open;  // how many jobs have not ended
};

struct EmbeddingJobCall {
  std::unique_ptr<EmbeddingTask> task;
  MakeErrorResponse make_error = error_response;
  std::string id, model, endpoint;  // model: the name that clients use
  std::string engine_model;         // the engine's name of the model
  // A copy of ServedModel::hold, which prevents that the model is removed; released when all requests are submitted.
  std::shared_ptr<const void> model_hold;
  std::uint32_t max_context = 0;
  std::uint32_t window = 0;  // how many inputs may be in the engine at once; they count as the tenant's open choices
  std::shared_ptr<TenantEntry> tenant;
  std::string owner;  // the tenant's name, which owns the job's tasks on the work queue
  std::shared_ptr<Connection> connection;
  Headers headers;
  std::string traceparent;
  std::stop_token gone;
};

class EmbeddingJob : public std::enable_shared_from_this<EmbeddingJob> {
 public:
  EmbeddingJob(const EmbeddingServices& services, EmbeddingJobCall call);
  // Submits the first inputs and makes sure that the connection is answered in the end, even after an error. Called on
  // a thread of the work queue.
  void start();

 private:
  class InputSink;
  struct Input {
    std::optional<RequestHandle> handle;  // set while the engine has the request
    bool has_ended = false;
    std::vector<float> embedding;
    double score = 0;
  };

  void submit_more();
  // Stores the result of submitting input i. Returns false if the engine's queue is full; input i is then submitted
  // again after another input of this call has ended. REQUIRES: mutex_.
  bool take_handle(std::uint32_t i, Result<RequestHandle> handle);
  void end(std::uint32_t i);
  void take(std::uint32_t i);                      // stores the result of an input that has ended. REQUIRES: mutex_
  void fail(std::uint32_t i, const Error& error);  // ends the call. REQUIRES: mutex_
  void cancel();
  void go_on();  // submits more inputs, or ends the call. REQUIRES: mutex_
  void conclude();
  void respond();

  const EmbeddingServices services_;
  EmbeddingJobCall call_;
  Metrics::Series& series_;
  const std::chrono::steady_clock::time_point started_;

  std::mutex mutex_;
  std::vector<Input> inputs_;
  std::size_t next_ = 0;  // index of the first input that was not submitted yet
  std::uint32_t n_running_ = 0;
  bool is_submitting_ = false, is_cancelled_ = false, is_concluded_ = false;
  std::optional<ApiError> error_;  // the first error of an input; empty if there was none
  std::string finish_ = "stop";
  Usage usage_;
  double queue_ms_ = 0;  // how long the first input waited in the queue
  HttpResponse answer_;
};

}  // namespace zinc_rt::server
