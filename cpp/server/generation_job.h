// GenerationJob is one API call that generates text. It submits its prompts to the engine as requests, writes their
// events as an answer, whole or streamed, and writes the call's row in the ledger.
// Thread rule: call start() once. The engine's drainer, the work queue and the I/O threads call the other members.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "server/answers/answer_body.h"
#include "server/metrics.h"
#include "server/state/state_store.h"
#include "server/tenants/tenants.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// JobServices are the parts of the server that jobs use. They must outlive every job.
struct JobServices {
  Engine& engine;
  StateStore& store;
  Metrics& metrics;
  WorkQueue& ends;  // completes answers; a separate queue, so that ends of answers never wait behind arriving requests
};

// WantedLatency holds the latencies that the caller wants, in milliseconds: until the first token, and per token on
// average. 0 means that the caller gave none.
struct WantedLatency {
  std::uint32_t first_token_ms = 0, token_ms = 0;
};

// JobContext describes a job's API call: the caller, the model, and the connection for the answer.
struct JobContext {
  MakeWriter make_writer = nullptr;
  MakeErrorResponse make_error = nullptr;
  AnswerHead head;           // its `model` is the name that clients use
  std::string engine_model;  // the engine's name of the model
  // A copy of ServedModel::hold, so that the model is not removed before all requests are submitted.
  std::shared_ptr<const void> model_hold;
  std::string endpoint;
  std::uint32_t max_context = 0;
  std::shared_ptr<TenantEntry> tenant;
  std::shared_ptr<Connection> connection;
  Headers headers;          // headers of the answer
  std::string traceparent;  // the caller's W3C trace context, for the step timeline; empty: none
  // The latency that the client wants; metrics count how often it is reached, but it does not change scheduling.
  WantedLatency wanted_latency;
  std::stop_token gone;   // stop is requested when the client disconnects
  ByteBudget::Hold held;  // counts the bytes of a conversation that will be stored
};

class GenerationJob : public std::enable_shared_from_this<GenerationJob> {
 public:
  GenerationJob(const JobServices& services, GenerationCall call, JobContext context);
  // Submits all prompts. If it returns an error, no prompt runs, the tenant's open request is closed, and the caller
  // must answer the connection. Called on a thread of a work queue.
  ApiResult<void> start();

 private:
  class PromptSink;
  // Choice is one of n completions of a prompt. While the choice runs, only the drainer uses this object. After its end
  // only the work queue does.
  struct Choice {
    std::string waiting;  // an event that the connection could not accept yet
    bool is_waiting = false;
    std::uint64_t last_us = 0;
  };

  ApiResult<void> submit_all();
  SinkResult push(std::uint32_t prompt, const StreamEvent& event);
  void end(std::uint32_t prompt, std::uint32_t index);
  void finish_choice(std::uint32_t prompt, std::uint32_t index);
  void conclude();
  void record(const Usage& usage, const std::string& finish);
  void judge_latency(const Timings& timings);
  void send_rest();
  Status keep();
  void cancel();

  const JobServices services_;
  JobContext context_;
  AnswerBody body_;
  const GenerationCall& call_;  // body_'s
  Metrics::Series& series_;
  const std::chrono::steady_clock::time_point started_;
  std::vector<Choice> choices_;  // n_ elements per prompt, in the order of the prompts
  std::uint32_t n_ = 1;          // choices per prompt

  std::mutex mutex_;  // guards handles_ while requests are submitted, and the ends of choices
  // Handles of the submitted requests, by which the job cancels them.
  std::vector<RequestHandle> handles_;
  std::uint32_t n_open_ = 0;
  std::atomic<bool> is_cancelled_{false}, is_refused_{false};
  std::atomic<bool> has_stream_begun_{false};  // true after the head and the events before the first choice were sent
  // The last events of the stream, which are sent after the ledger has stored the call's row.
  std::string last_events_;
  // The answer if it is not streamed. It is sent after the ledger has stored the call's row.
  HttpResponse whole_;
};

}  // namespace zinc_rt::server
