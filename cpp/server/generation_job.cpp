#include "server/generation_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/json_text.h"
#include "base/log.h"
#include "server/api/request_checks.h"

namespace zinc_rt::server {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// Passes the engine's events to the job. Until all choices have ended, the job owns the handles and the engine owns the
// sinks.
class GenerationJob::PromptSink final : public Sink {
 public:
  PromptSink(std::shared_ptr<GenerationJob> job, std::uint32_t prompt) : job_(std::move(job)), prompt_(prompt) {}
  SinkResult push(const StreamEvent& event) override { return job_->push(prompt_, event); }
  void end(std::uint32_t index) override { job_->end(prompt_, index); }

 private:
  const std::shared_ptr<GenerationJob> job_;
  const std::uint32_t prompt_;
};

GenerationJob::GenerationJob(const JobServices& services, GenerationCall call, JobContext context)
    : services_(services),
      context_(std::move(context)),
      body_(services.engine, context_.engine_model, std::move(context_.head), std::move(call), context_.make_writer),
      call_(body_.call()),
      series_(services.metrics.series(context_.tenant->name, body_.head().model)),
      started_(std::chrono::steady_clock::now()),
      n_(call_.requests.front().n) {
  choices_.resize(body_.n_choices());
  n_open_ = body_.n_choices();
}

ApiResult<void> GenerationJob::start() {
  auto started = submit_all();
  context_.model_hold.reset();
  if (!started) context_.tenant->close_request(choices_.size(), 0);
  return started;
}

ApiResult<void> GenerationJob::submit_all() {
  const auto session = context_.tenant->tenant.session();
  if (!session) return std::unexpected(to_api_error(session.error()));
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < call_.requests.size(); ++i) {
      Request request = body_.take_request(i);
      request.cancel = context_.gone;
      request.traceparent = context_.traceparent;
      auto handle = session->submit(std::move(request), std::make_shared<PromptSink>(self, i));
      if (handle) {
        handles_.push_back(std::move(*handle));
        continue;
      }
      is_refused_ = true;
      for (auto& h : handles_) h.cancel();
      handles_.clear();
      return std::unexpected(submit_error(handle.error(), call_, i, context_.max_context));
    }
    if (call_.stream) {
      HttpResponse head;
      head.content_type = body_.stream_type();
      head.headers = context_.headers;
      head.headers.emplace_back("Cache-Control", "no-cache");
      head.headers.emplace_back("X-Accel-Buffering", "no");
      services_.metrics.answered(head.status);
      context_.connection->start_stream(std::move(head));
      if (const auto begin = body_.begin(handles_.front().completion().usage); !begin.empty())
        context_.connection->write(begin);
      has_stream_begun_ = true;
    }
  }
  context_.connection->on_gone([weak = weak_from_this()] {
    const auto job = weak.lock();
    if (!job) return;
    job->is_cancelled_ = true;
    job->services_.ends.post([job] { job->cancel(); });
  });
  return {};
}

void GenerationJob::cancel() {
  const std::lock_guard lock(mutex_);
  for (auto& handle : handles_) handle.cancel();
}

SinkResult GenerationJob::push(std::uint32_t prompt, const StreamEvent& event) {
  Choice& choice = choices_[prompt * n_ + event.index];
  if (call_.stream && !has_stream_begun_) return SinkResult::kFull;
  if (!choice.is_waiting) {
    if (event.is_token) {
      // Observes the time since the step that made the previous token; for the first token, the time since the request
      // arrived.
      if (choice.last_us == 0)
        series_.time_to_first_token->Observe(seconds_since(started_));
      else
        series_.token_interval->Observe(static_cast<double>(event.time_us - choice.last_us) * 1e-6);
      choice.last_us = event.time_us;
    }
    if (!call_.stream) return is_cancelled_ ? SinkResult::kFailed : SinkResult::kTaken;
    choice.waiting = body_.part(prompt, event);
    if (choice.waiting.empty()) return SinkResult::kTaken;
  }
  choice.is_waiting = !context_.connection->write(choice.waiting);
  return choice.is_waiting ? SinkResult::kFull : SinkResult::kTaken;
}

void GenerationJob::end(std::uint32_t prompt, std::uint32_t index) {
  services_.ends.post([self = shared_from_this(), prompt, index] { self->finish_choice(prompt, index); });
}

void GenerationJob::finish_choice(std::uint32_t prompt, std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  if (is_refused_) return;
  if (call_.stream) {
    const auto event = body_.end_choice(prompt, index, handles_[prompt]);
    if (n_open_ == 1 || !context_.connection->write(event)) last_events_ += event;
  }
  if (--n_open_ == 0) conclude();
}

// Called when all choices have ended. Writes the request into the ledger before the client gets the end of the answer.
void GenerationJob::conclude() {
  auto [totals, finish, error] = sum_up(handles_);
  const auto& [usage, timings] = totals;
  ApiError shown;
  if (error) shown = request_error(*error, call_, context_.max_context);
  const auto& to = context_.connection;
  to->note("prompt_tokens", std::to_string(usage.prompt_tokens));
  to->note("cached_tokens", std::to_string(usage.cached_tokens));
  to->note("completion_tokens", std::to_string(usage.completion_tokens));
  to->note("finish", finish);
  if (error) to->note("error", shown.message);
  if (!context_.traceparent.empty()) to->note("traceparent", context_.traceparent);
  std::string end_of_stream;
  if (!error) {
    if (call_.stream)
      end_of_stream = body_.end(totals);
    else
      whole_ = {.headers = {}, .content_type = kJson, .body = body_.whole(handles_, totals)};
    if (const auto kept = keep(); !kept) {
      error = kept.error();
      shown = to_api_error(*error);
      finish = "error";
    }
  }
  if (error && call_.stream) {
    last_events_ = body_.failed(shown);
  } else if (error) {
    whole_ = context_.make_error(shown);
  } else {
    last_events_ += end_of_stream;
  }
  series_.prompt_tokens->Increment(usage.prompt_tokens);
  series_.cached_tokens->Increment(usage.cached_tokens);
  series_.generated_tokens->Increment(usage.completion_tokens);
  series_.request_time->Observe(seconds_since(started_));
  series_.queue_time->Observe(timings.queue_ms * 1e-3);
  if (!error) judge_latency(timings);
  services_.metrics.finished(series_, finish);
  log().info("request {} tenant {} model {} {} {} prompt tokens ({} cached), {} generated, {}, {:.0f} ms{}{}",
             body_.head().id, context_.tenant->name, body_.head().model, context_.endpoint, usage.prompt_tokens,
             usage.cached_tokens, usage.completion_tokens, finish, 1e3 * seconds_since(started_),
             context_.traceparent.empty() ? "" : ", traceparent ", context_.traceparent);
  context_.tenant->close_request(choices_.size(), usage.total_tokens);
  handles_.clear();  // because the handles own the sinks, which own this job
  record(usage, finish);
}

// Counts whether the first choice met the wanted latencies. The timings of the other choices are not known.
void GenerationJob::judge_latency(const Timings& timings) {
  const auto judge = [&](const char* which, std::uint32_t wanted_ms, double ms) {
    if (wanted_ms == 0 || ms <= 0) return;
    const bool is_met = ms <= wanted_ms;
    services_.metrics.wanted_latency(which, is_met);
    context_.connection->note(which, is_met ? "met" : "missed");
  };
  judge("ttft", context_.wanted_latency.first_token_ms, timings.prefill_ms);
  judge("tpot", context_.wanted_latency.token_ms,
        timings.decode_tokens_per_s > 0 ? 1e3 / timings.decode_tokens_per_s : 0);
}

// Stores the answer if the request wants that. It does so before the client gets the end of the answer.
Status GenerationJob::keep() {
  const auto kept = body_.kept();
  if (kept.empty()) return {};
  return services_.store.put_response({body_.head().id, context_.tenant->name,
                                       fmt::format(R"({{"input":{},"response":{}}})", call_.stored_input, kept),
                                       body_.head().created_s});
}

void GenerationJob::record(const Usage& usage, const std::string& finish) {
  UsageRow row;
  row.id = body_.head().id;
  row.tenant = context_.tenant->name;
  row.model = body_.head().model;
  row.endpoint = context_.endpoint;
  row.finish = finish;
  row.time_s = static_cast<std::int64_t>(std::time(nullptr));
  row.prompt_tokens = usage.prompt_tokens;
  row.cached_tokens = usage.cached_tokens;
  row.completion_tokens = usage.completion_tokens;
  services_.store.record(std::move(row), [self = shared_from_this()] { self->send_rest(); });
}

void GenerationJob::send_rest() {
  if (call_.stream) {
    context_.connection->finish(last_events_);
    return;
  }
  services_.metrics.answered(whole_.status);
  whole_.headers.insert(whole_.headers.end(), context_.headers.begin(), context_.headers.end());
  context_.connection->respond(std::move(whole_));
}

}  // namespace zinc_rt::server
