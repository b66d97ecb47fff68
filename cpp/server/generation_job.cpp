#include "server/generation_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/json_text.h"
#include "base/log.h"

namespace zinc_rt::server {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr const char* kBadLogits = "bad_logits";  // as the engine's finish reason

// Which field the engine complains about: the first one that its message names, else the prompt.
std::string field_of(std::string_view message, Api api) {
  std::string field = api == Api::kChat ? "messages" : api == Api::kText ? "prompt" : "token_ids";
  auto first = std::string_view::npos;
  for (const char* name :
       {"logit_bias", "stop_token_ids", "min_tokens", "chat_template_kwargs", "continue_final_message"})
    if (const auto at = message.find(name); at < first) {
      first = at;
      field = name;
    }
  return field;
}

// The code and the words of OpenAI's API, since clients look for them: LiteLLM falls back on a model with a longer
// context.
ApiError context_error(ApiError error, std::uint32_t max_context) {
  error.code = "context_length_exceeded";
  error.message = fmt::format("This model's maximum context length is {} tokens. However, this request wants more: {}",
                              max_context, error.message);
  return error;
}

// The answer to a request that the engine refused.
ApiError request_error(const Error& error, Api api, std::uint32_t max_context) {
  auto out = to_api_error(error);
  if (out.status != 400) return out;
  out.param = field_of(error.message, api);
  const bool is_too_long = error.message.contains("the context has") || error.message.contains("allowed (context of");
  return is_too_long ? context_error(std::move(out), max_context) : out;
}

}  // namespace

// Passes the engine's events on to the job. Until all choices have ended, the job keeps the handles and the engine the
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

GenerationJob::GenerationJob(const JobServices& services, JobCall call)
    : services_(services),
      call_(std::move(call)),
      names_(services.engine, call_.engine_model),
      series_(services.metrics.series(call_.tenant->name, call_.head.model)),
      started_(std::chrono::steady_clock::now()),
      n_(call_.call.requests.front().n) {
  const auto n = call_.call.requests.size() * n_;
  choices_.assign(n, Choice(call_.prompt_opens_reasoning));
  n_open_ = static_cast<std::uint32_t>(n);
}

ApiResult<void> GenerationJob::start() {
  auto started = submit_all();
  call_.model_hold.reset();
  if (!started) call_.tenant->close_request(choices_.size(), 0);
  return started;
}

ApiResult<void> GenerationJob::submit_all() {
  const auto session = call_.tenant->tenant.session();
  if (!session) return std::unexpected(to_api_error(session.error()));
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < call_.call.requests.size(); ++i) {
      Request request = call_.call.echo ? call_.call.requests[i] : std::move(call_.call.requests[i]);
      request.cancel = call_.gone;
      request.model = call_.engine_model;
      request.request_id = call_.head.id;
      request.traceparent = call_.traceparent;
      auto handle = session->submit(std::move(request), std::make_shared<PromptSink>(self, i));
      if (handle) {
        handles_.push_back(std::move(*handle));
        continue;
      }
      is_refused_ = true;
      for (auto& h : handles_) h.cancel();
      handles_.clear();
      return std::unexpected(request_error(handle.error(), call_.call.api, call_.max_context));
    }
    if (call_.call.stream) {
      HttpResponse head;
      head.content_type = "text/event-stream";
      head.headers = call_.headers;
      head.headers.emplace_back("Cache-Control", "no-cache");
      head.headers.emplace_back("X-Accel-Buffering", "no");
      services_.metrics.answered(head.status);
      call_.connection->start_stream(std::move(head));
    }
  }
  call_.connection->on_gone([weak = weak_from_this()] {
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

ChoiceText GenerationJob::begin_text(std::uint32_t prompt, std::uint32_t index) const {
  ChoiceText text;
  text.index = prompt * n_ + index;
  const auto& request = call_.call.requests[prompt];
  text.n_top = call_.call.n_top.value_or(request.logprobs);
  return text;
}

std::string GenerationJob::event_of(const ChoiceText& text) const {
  return chunk_event(call_.head, text, names_, call_.call.include_usage);
}

std::string GenerationJob::echo_of(std::uint32_t prompt) const {
  const Request& request = call_.call.requests[prompt];
  if (!call_.call.echo) return {};
  if (request.prompt) return *request.prompt;
  return services_.engine.detokenize(*request.token_ids, false, call_.engine_model).value_or("");
}

SinkResult GenerationJob::push(std::uint32_t prompt, const StreamEvent& event) {
  Choice& choice = choices_[prompt * n_ + event.index];
  if (!choice.is_waiting) {
    if (event.is_token) {
      // The time since the step that made the token before; for the first token, since the request came.
      if (choice.last_us == 0)
        series_.time_to_first_token->Observe(seconds_since(started_));
      else
        series_.token_interval->Observe(static_cast<double>(event.time_us - choice.last_us) * 1e-6);
      choice.last_us = event.time_us;
    }
    ReasoningSplitter::Parts parts;
    if (call_.call.split_reasoning) {
      parts = choice.splitter.push(event.text);
      if (event.is_token && (choice.splitter.is_inside() || !parts.reasoning.empty())) ++choice.n_reasoning;
    } else {
      parts.answer = event.text;
    }
    if (!call_.call.stream) return is_cancelled_ ? SinkResult::kFailed : SinkResult::kTaken;
    auto text = begin_text(prompt, event.index);
    text.text = std::move(parts.answer);
    if (call_.call.include_reasoning) text.reasoning = std::move(parts.reasoning);
    std::vector<TokenLogprob> logprobs;
    std::vector<std::int32_t> ids;
    if (call_.call.wants_logprobs) {
      if (event.logprob) logprobs.push_back(*event.logprob);
      text.logprobs = &logprobs;
    }
    if (call_.call.return_token_ids) {
      if (event.is_token) ids.push_back(event.token_id);
      text.token_ids = &ids;
    }
    text.has_role = !choice.has_begun && call_.call.api == Api::kChat;
    if (!choice.has_begun && call_.call.echo) text.text.insert(0, echo_of(prompt));
    if (text.text.empty() && text.reasoning.empty() && !text.has_role && logprobs.empty() && ids.empty())
      return SinkResult::kTaken;
    text.text_offset = choice.n_characters;
    choice.n_characters += n_characters(text.text);
    choice.has_begun = true;
    choice.waiting = event_of(text);
  }
  choice.is_waiting = !call_.connection->write(choice.waiting);
  return choice.is_waiting ? SinkResult::kFull : SinkResult::kTaken;
}

void GenerationJob::end(std::uint32_t prompt, std::uint32_t index) {
  services_.ends.post([self = shared_from_this(), prompt, index] { self->finish_choice(prompt, index); });
}

void GenerationJob::finish_choice(std::uint32_t prompt, std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  if (is_refused_) return;
  Choice& choice = choices_[prompt * n_ + index];
  if (call_.call.stream) {
    const auto all = handles_[prompt].completion();
    const auto& completion = all.choices.empty() ? all : all.choices[index];
    auto text = begin_text(prompt, index);
    const auto rest = call_.call.split_reasoning ? choice.splitter.finish() : ReasoningSplitter::Parts{};
    text.text = rest.answer;
    if (call_.call.include_reasoning) text.reasoning = rest.reasoning;
    if (!choice.has_begun && call_.call.echo) text.text.insert(0, echo_of(prompt));
    text.has_role = !choice.has_begun && call_.call.api == Api::kChat;
    text.finish_reason = completion.finish_reason.empty() ? "error" : completion.finish_reason;
    const auto event = event_of(text);
    if (n_open_ == 1 || !call_.connection->write(event)) last_events_ += event;
  }
  if (--n_open_ == 0) conclude();
}

// Called when all choices have ended. The request is in the ledger before the client gets the end of the answer.
void GenerationJob::conclude() {
  Usage usage;
  Timings timings;
  std::uint32_t n_reasoning = 0;
  std::string finish;
  std::optional<Error> error;
  for (const auto& choice : choices_) n_reasoning += choice.n_reasoning;
  for (const auto& handle : handles_) {
    const auto c = handle.completion();
    usage.prompt_tokens += c.usage.prompt_tokens;
    usage.completion_tokens += c.usage.completion_tokens;
    usage.cached_tokens += c.usage.cached_tokens;
    if (&handle == &handles_.front()) timings = c.timings;
    if (finish.empty() || c.finish_reason == kBadLogits) finish = c.finish_reason;
    if (const auto status = handle.wait(); !status && !error) error = status.error();
  }
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  ApiError shown;
  if (error) {
    shown = request_error(*error, call_.call.api, call_.max_context);
    shown.is_final = finish == kBadLogits;  // the same request would fail again
    if (shown.is_final)
      shown.code = kBadLogits;
    else
      finish = "error";
  }
  const auto& to = call_.connection;
  to->note("prompt_tokens", std::to_string(usage.prompt_tokens));
  to->note("cached_tokens", std::to_string(usage.cached_tokens));
  to->note("completion_tokens", std::to_string(usage.completion_tokens));
  to->note("finish", finish);
  if (error) to->note("error", shown.message);
  if (!call_.traceparent.empty()) to->note("traceparent", call_.traceparent);
  const auto timings_text = call_.call.wants_timings ? timings_json(timings) : std::string();
  if (error && call_.call.stream) {
    last_events_ = "data: " + error_json(shown) + "\n\n";
  } else if (error) {
    whole_ = error_response(shown);
  } else if (call_.call.stream) {
    if (call_.call.include_usage) last_events_ += usage_event(call_.head, usage_json(usage, n_reasoning), timings_text);
    last_events_ += "data: [DONE]\n\n";
  } else {
    send_whole(usage, n_reasoning, timings);
  }
  series_.prompt_tokens->Increment(usage.prompt_tokens);
  series_.cached_tokens->Increment(usage.cached_tokens);
  series_.generated_tokens->Increment(usage.completion_tokens);
  series_.request_time->Observe(seconds_since(started_));
  series_.queue_time->Observe(timings.queue_ms * 1e-3);
  services_.metrics.finished(series_, finish);
  log().info("request {} tenant {} model {} {} {} prompt tokens ({} cached), {} generated, {}, {:.0f} ms{}{}",
             call_.head.id, call_.tenant->name, call_.head.model, call_.endpoint, usage.prompt_tokens,
             usage.cached_tokens, usage.completion_tokens, finish, 1e3 * seconds_since(started_),
             call_.traceparent.empty() ? "" : ", traceparent ", call_.traceparent);
  call_.tenant->close_request(choices_.size(), usage.total_tokens);
  handles_.clear();  // they hold the sinks, which hold this job
  record(usage, finish);
}

// Puts together an answer that is not streamed.
void GenerationJob::send_whole(const Usage& usage, std::uint32_t n_reasoning, const Timings& timings) {
  std::vector<Completion> all;
  for (const auto& handle : handles_) {
    auto c = handle.completion();
    if (c.choices.empty())
      all.push_back(std::move(c));
    else
      std::ranges::move(c.choices, std::back_inserter(all));
  }
  std::vector<ChoiceText> texts;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const Completion& c = all[i];
    auto text = begin_text(i / n_, i % n_);
    if (call_.call.split_reasoning) {
      auto parts = split_reasoning(c.text, call_.prompt_opens_reasoning);
      text.text = std::move(parts.answer);
      if (call_.call.include_reasoning) text.reasoning = std::move(parts.reasoning);
    } else {
      text.text = echo_of(i / n_) + c.text;
    }
    if (call_.call.wants_logprobs) text.logprobs = &c.logprobs;
    const auto& first = all[i - i % n_];  // of n choices only the first has the prompt's logprobs
    if (call_.call.echo) text.echo_logprobs = &first.prompt_logprobs;
    if (call_.call.prompt_logprobs) {
      text.prompt_logprobs = &first.prompt_logprobs;
      text.n_prompt_top = *call_.call.prompt_logprobs;
    }
    if (call_.call.return_token_ids) text.token_ids = &c.token_ids;
    text.finish_reason = c.finish_reason;
    texts.push_back(std::move(text));
  }
  whole_.content_type = kJson;
  whole_.body = whole_answer(call_.head, texts, names_, usage_json(usage, n_reasoning),
                             call_.call.wants_timings ? timings_json(timings) : std::string());
}

void GenerationJob::record(const Usage& usage, const std::string& finish) {
  UsageRow row;
  row.id = call_.head.id;
  row.tenant = call_.tenant->name;
  row.model = call_.head.model;
  row.endpoint = call_.endpoint;
  row.finish = finish;
  row.time_s = static_cast<std::int64_t>(std::time(nullptr));
  row.prompt_tokens = usage.prompt_tokens;
  row.cached_tokens = usage.cached_tokens;
  row.completion_tokens = usage.completion_tokens;
  services_.store.record(std::move(row), [self = shared_from_this()] { self->send_rest(); });
}

void GenerationJob::send_rest() {
  if (call_.call.stream) {
    call_.connection->finish(last_events_);
    return;
  }
  services_.metrics.answered(whole_.status);
  whole_.headers.insert(whole_.headers.end(), call_.headers.begin(), call_.headers.end());
  call_.connection->respond(std::move(whole_));
}

}  // namespace zinc_rt::server
