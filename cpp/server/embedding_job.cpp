#include "server/embedding_job.h"

#include <fmt/format.h>

#include <ctime>

#include "base/log.h"
#include "server/api/request_checks.h"
#include "server/incoming.h"

namespace zinc_rt::server {

// Reports the end of an input to the job. All other events of an embedding are about preemption, so they are ignored.
class EmbeddingJob::InputSink final : public Sink {
 public:
  InputSink(std::shared_ptr<EmbeddingJob> job, std::uint32_t input) : job_(std::move(job)), input_(input) {}
  SinkResult push(const StreamEvent&) override { return SinkResult::kTaken; }
  void end(std::uint32_t) override {
    job_->services_.ends.post([job = job_, input = input_] { job->end(input); });
  }

 private:
  const std::shared_ptr<EmbeddingJob> job_;
  const std::uint32_t input_;
};

EmbeddingJob::EmbeddingJob(const EmbeddingServices& services, EmbeddingJobCall call)
    : services_(services),
      call_(std::move(call)),
      series_(services.metrics.series(call_.tenant->name, call_.model)),
      started_(std::chrono::steady_clock::now()),
      inputs_(call_.task->size()) {
  ++services_.n_open;
}

void EmbeddingJob::start() {
  {
    const std::lock_guard lock(mutex_);
    is_submitting_ = true;
  }
  call_.connection->on_gone([weak = weak_from_this()] {
    if (const auto job = weak.lock()) job->services_.ends.post([job] { job->cancel(); });
  });
  submit_more();
}

// Submits further inputs. Only one thread at a time runs this function (is_submitting_ ensures it). The lock is not
// held during a submission, because tokenizing long texts takes long.
void EmbeddingJob::submit_more() {
  const auto session = call_.tenant->tenant.session();
  for (;;) {
    std::uint32_t i = 0;
    Request request;
    {
      const std::lock_guard lock(mutex_);
      if (!session && !error_) fail(0, session.error());
      if (error_ || next_ == inputs_.size() || n_running_ >= call_.window) {
        is_submitting_ = false;
        return go_on();
      }
      i = static_cast<std::uint32_t>(next_++);
      ++n_running_;
      request = call_.task->request(i);
    }
    request.cancel = call_.gone;
    request.model = call_.engine_model;
    request.request_id = call_.id;
    request.traceparent = call_.traceparent;
    auto handle = session->submit(std::move(request), std::make_shared<InputSink>(shared_from_this(), i));
    const std::lock_guard lock(mutex_);
    if (take_handle(i, std::move(handle))) continue;
    is_submitting_ = false;
    return;
  }
}

bool EmbeddingJob::take_handle(std::uint32_t i, Result<RequestHandle> handle) {
  Input& input = inputs_[i];
  if (handle) {
    call_.task->forget(i);
    input.handle = std::move(*handle);
    if (is_cancelled_ || error_) input.handle->cancel();
    if (input.has_ended) take(i);
    return true;
  }
  --n_running_;
  if (handle.error().code == StatusCode::kExhausted && n_running_ > 0) {
    next_ = i;
    return false;
  }
  fail(i, handle.error());
  return true;
}

void EmbeddingJob::fail(std::uint32_t i, const Error& error) {
  if (error_) return;
  auto [field, place] = call_.task->place(i, error);
  error_ = prompt_error(error, std::move(field), call_.max_context);
  if (!place.empty()) error_->message = fmt::format("{}: {}", place, error_->message);
  for (Input& other : inputs_)
    if (other.handle) other.handle->cancel();
}

void EmbeddingJob::end(std::uint32_t i) {
  const std::lock_guard lock(mutex_);
  inputs_[i].has_ended = true;
  if (!inputs_[i].handle) return;  // submit_more() will take the result
  take(i);
  go_on();
}

void EmbeddingJob::take(std::uint32_t i) {
  Input& input = inputs_[i];
  auto completion = input.handle->completion();
  const auto status = input.handle->wait();
  input.handle.reset();  // because the handle owns the sink, which owns this job
  --n_running_;
  usage_.prompt_tokens += completion.usage.prompt_tokens;
  usage_.cached_tokens += completion.usage.cached_tokens;
  if (i == 0) queue_ms_ = completion.timings.queue_ms;
  if (!status) {
    if (!error_) finish_ = completion.finish_reason == "bad_logits" ? "bad_logits" : "error";
    fail(i, status.error());
  } else if (completion.finish_reason != "stop") {
    finish_ = completion.finish_reason;
    fail(i, {StatusCode::kCancelled, fmt::format("[embeddings] the request ended as {}", finish_), 0});
  }
  input.embedding = std::move(completion.embedding);
  input.score = completion.score.value_or(0);
}

void EmbeddingJob::cancel() {
  const std::lock_guard lock(mutex_);
  if (is_concluded_) return;
  is_cancelled_ = true;
  fail(0, {StatusCode::kCancelled, "[embeddings] the client has left", 0});
  finish_ = "cancelled";
  go_on();
}

void EmbeddingJob::go_on() {
  if (is_submitting_ || is_concluded_) return;
  if (!error_ && next_ < inputs_.size()) {
    if (n_running_ >= call_.window) return;
    is_submitting_ = true;
    services_.work.post(call_.owner, [self = shared_from_this()] { self->submit_more(); });
  } else if (n_running_ == 0) {
    is_concluded_ = true;
    services_.ends.post([self = shared_from_this()] { self->conclude(); });
  }
}

// Called once, when all requests of the call have ended. Writes the ledger's row, and then sends the answer.
void EmbeddingJob::conclude() {
  call_.model_hold.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  if (error_ && finish_ == "stop") finish_ = "error";
  if (error_) {
    answer_ = call_.make_error(*error_);
    if (error_->status == 400) services_.metrics.refused("invalid");
  } else {
    EmbeddingAnswer answer{call_.model, call_.id, {}, {}, usage_, seconds};
    answer.embeddings.reserve(inputs_.size());
    answer.scores.reserve(inputs_.size());
    for (Input& input : inputs_) {
      answer.embeddings.push_back(std::move(input.embedding));
      answer.scores.push_back(input.score);
    }
    answer_.content_type = kJson;
    answer_.body = call_.task->answer(std::move(answer));
  }
  const auto& to = call_.connection;
  to->note("prompt_tokens", std::to_string(usage_.prompt_tokens));
  to->note("cached_tokens", std::to_string(usage_.cached_tokens));
  to->note("finish", finish_);
  if (error_) to->note("error", error_->message);
  if (!call_.traceparent.empty()) to->note("traceparent", call_.traceparent);
  series_.prompt_tokens->Increment(usage_.prompt_tokens);
  series_.cached_tokens->Increment(usage_.cached_tokens);
  series_.request_time->Observe(seconds);
  series_.queue_time->Observe(queue_ms_ * 1e-3);
  services_.metrics.finished(series_, finish_);
  log().info("request {} tenant {} model {} {} {} inputs, {} prompt tokens ({} cached), {}, {:.0f} ms", call_.id,
             call_.tenant->name, call_.model, call_.endpoint, inputs_.size(), usage_.prompt_tokens,
             usage_.cached_tokens, finish_, 1e3 * seconds);
  call_.tenant->close_request(call_.window, usage_.prompt_tokens);
  --services_.n_open;
  UsageRow row;
  row.id = call_.id;
  row.tenant = call_.tenant->name;
  row.model = call_.model;
  row.endpoint = call_.endpoint;
  row.finish = finish_;
  row.time_s = static_cast<std::int64_t>(std::time(nullptr));
  row.prompt_tokens = usage_.prompt_tokens;
  row.cached_tokens = usage_.cached_tokens;
  services_.store.record(std::move(row), [self = shared_from_this()] { self->respond(); });
}

void EmbeddingJob::respond() {
  services_.metrics.answered(answer_.status);
  answer_.headers.insert(answer_.headers.end(), call_.headers.begin(), call_.headers.end());
  call_.connection->respond(std::move(answer_));
}

}  // namespace zinc_rt::server
