#include "engine/generation.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/clock.h"
#include "engine/embedding.h"
#include "engine/logprobs.h"

namespace zinc_rt {
namespace {

double milliseconds(sched::Micros us) {
  return static_cast<double>(us) * 1e-3;
}

}  // namespace

Generation::Generation(std::shared_ptr<Model> model, std::shared_ptr<TenantState> tenant, const Request& request,
                       const Prompt& prompt, std::uint64_t seed, std::uint32_t index, std::shared_ptr<Sink> sink)
    : model_(std::move(model)),
      tenant_(std::move(tenant)),
      request_(request),
      n_prompt_(static_cast<std::uint32_t>(prompt.ids.size())),
      second_text_(prompt.second_text),
      index_(index),
      prompt_hash_(XXH3_64bits(prompt.ids.data(), prompt.ids.size() * sizeof(prompt.ids[0]))),
      started_(now_us()),
      last_(started_),
      sink_(std::move(sink)),
      mask_(prompt.mask ? std::make_shared<AnswerMask>(*prompt.mask) : nullptr),
      output_(*model_, request_, prompt) {
  completion_.seed = seed;
  completion_.usage.prompt_tokens = n_prompt_;
  if (scores_prompt()) {
    prompt_logprobs_.reserve(n_prompt_);
    prompt_logprobs_.push_back({prompt.ids[0], std::numeric_limits<double>::quiet_NaN(), {}});
  }
  sampling_ = {request_, seed};
  // A logits processor may keep state that a wrong guess would spoil, so its requests get no guesses.
  if (!request_.embed && !has_processor()) {
    const std::lock_guard lock(tenant_->mutex);
    speculation_ = model_->speculation(request_, tenant_->quota.speculate);
  }
  has_prediction_ = !prompt.expected.empty();
  if (speculation_.most == 0) return;
  const std::uint64_t n_limit = std::uint64_t{n_prompt_} + request_.max_tokens;
  drafter_.emplace(n_prompt_, static_cast<std::uint32_t>(std::min<std::uint64_t>(n_limit, model_->info().max_context)),
                   speculation_.most, prompt.expected);
  drafter_->append_prompt(prompt.ids);
}

sched::RequestParams Generation::params(std::span<const std::int32_t> prompt, sched::Qos qos) const {
  sched::RequestParams p;
  p.tenant = tenant_->id;
  p.qos = qos;
  p.prompt = mem::SpanList(prompt);
  p.max_tokens = request_.max_tokens;
  p.sampling = sampling_;
  for (const auto& [id, bias] : request_.logit_bias) p.bias.push_back({id, bias});
  p.min_tokens = request_.min_tokens;
  p.second_text = second_text_;
  p.scores_prompt = scores_prompt();
  p.n_prompt_logprobs = request_.prompt_logprobs.value_or(0);
  if (drafter_) p.speculation = speculation_;
  p.is_masked = mask_ != nullptr;
  p.is_processed = has_processor();
  p.wants_logits = request_.return_logits_hash;
  if (request_.logprobs > 0) p.n_logprobs = request_.logprobs;
  p.cache_salt = request_.cache_salt;
  p.stop_tokens = request_.stop_token_ids;
  if (!request_.ignore_eos)
    p.stop_tokens.insert(p.stop_tokens.end(), model_->end_tokens().begin(), model_->end_tokens().end());
  if (request_.deadline_ms > 0)
    p.deadline = started_ + static_cast<sched::Micros>(std::min(1e15, 1000 * request_.deadline_ms));
  return p;
}

std::unique_ptr<TokenDetails> Generation::make_details(const LogitsRow& row) const {
  auto details = std::make_unique<TokenDetails>();
  if (row.logprobs != nullptr) {
    details->logprob = logprob_of(*row.logprobs, row.token);
    return details;
  }
  if (row.is_prompt) {
    details->logprob = logprob_of(row.logits, row.token, *request_.prompt_logprobs);
    return details;
  }
  if (request_.return_logits_hash) details->logits_hash = XXH3_64bits(row.logits.data(), row.logits.size_bytes());
  if (request_.logprobs > 0) details->logprob = logprob_of(row.logits, row.token, request_.logprobs);
  return details;
}

bool Generation::take_embedding(std::span<const float> row) {
  if (model_->info().pooling == Pooling::kRank) {
    if (!std::isfinite(row[0])) return false;
    const std::lock_guard lock(mutex_);
    completion_.score = relevance(row[0]);
    return true;
  }
  auto embedding = normalized(row.first(request_.dimensions > 0 ? request_.dimensions : row.size()));
  if (embedding.empty()) return false;
  const std::lock_guard lock(mutex_);
  completion_.embedding = std::move(embedding);
  return true;
}

void Generation::keep(Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  has_error_ = true;
}

std::optional<std::span<const std::uint32_t>> Generation::mask_words(std::uint32_t n_guessed) {
  auto words = mask_->get(n_guessed);
  if (words) return *words;
  if (n_guessed == 0) keep(std::move(words.error()));
  return std::nullopt;
}

bool Generation::process(std::span<const std::int32_t> tokens, std::span<float> logits) {
  Status status;
  try {
    status = request_.logits_processor(tokens, logits);
  } catch (const std::exception& error) {
    status = fail(StatusCode::kInvalidArgument, "[logits_processor] {}", error.what());
  } catch (...) {
    status = fail(StatusCode::kInvalidArgument, "[logits_processor] it threw what is no exception");
  }
  if (!status) keep(std::move(status.error()));
  return status.has_value();
}

void Generation::no_token_left() {
  const auto* whose = has_processor()
                          ? "[logits_processor] the largest of the logits that it left, and logit_bias after it"
                          : "[grammar] the largest logit of the tokens that it allows, with logit_bias,";
  const char* field = has_processor() ? "logits_processor" : "output_format";
  keep(fail({StatusCode::kInvalidArgument, field}, "{} is no finite number: no token can be picked", whose).error());
}

void Generation::publish_prompt_logprobs() {
  if (scores_prompt()) completion_.prompt_logprobs = std::move(prompt_logprobs_);
}

std::string Generation::call_id(std::uint32_t call) const {
  const std::uint64_t of[] = {prompt_hash_, completion_.seed, index_, call};
  const auto hash = XXH3_128bits(of, sizeof of);
  const auto* format = model_->formats().calls();
  if (format == nullptr || !format->has_short_ids)
    return fmt::format("call_{:016x}{:08x}", hash.high64, static_cast<std::uint32_t>(hash.low64));
  return fmt::format("{:09x}", hash.low64 & 0xFFFFFFFFF);
}

void Generation::keep_pieces(StreamEvent& event) {
  auto& calls = completion_.tool_calls;
  for (auto& piece : event.pieces) {
    switch (piece.kind) {
      case PieceKind::kText:
        event.text += piece.text;
        completion_.text += piece.text;
        break;
      case PieceKind::kReasoning: completion_.reasoning += piece.text; break;
      case PieceKind::kCallBegin:
        piece.id = call_id(piece.call);
        calls.push_back({piece.id, piece.text, {}});
        break;
      case PieceKind::kCallArguments: calls.back().arguments += piece.text; break;
      case PieceKind::kCallEnd: break;
    }
  }
  if (!request_.parse_output) return event.pieces.clear();
  auto& all = completion_.pieces;
  for (const auto& piece : event.pieces)
    if (!all.empty() && all.back().kind == piece.kind && piece.kind != PieceKind::kCallBegin &&
        piece.kind != PieceKind::kCallEnd)
      all.back().text += piece.text;
    else
      all.push_back(piece);
}

void Generation::offer(StreamEvent event) {
  if (sink_failed_) return;
  event.index = index_;
  held_.push_back(std::move(event));
  offer_held();
}

void Generation::offer_held() {
  while (!held_.empty()) {
    SinkResult result = SinkResult::kFailed;
    try {
      result = sink_->push(held_.front());
    } catch (...) {  // a client's sink threw an exception, which must not affect other streams
    }
    if (result == SinkResult::kFailed) {
      sink_failed_ = true;
      held_.clear();
      wanted_end_ = sched::Finish::kSinkFailed;
      break;
    }
    if (result == SinkResult::kFull) break;
    held_.pop_front();
  }
  is_held_up_.store(!held_.empty(), std::memory_order_relaxed);
}

void Generation::on_admitted(bool is_first, double waited_ms, std::uint32_t cached_tokens) {
  {
    const std::lock_guard lock(tenant_->mutex);
    if (is_first) {
      tenant_->accounting.queued(waited_ms);
      tenant_->accounting.admitted(n_prompt_);
      tenant_->accounting.cached(cached_tokens, n_prompt_);
    } else {
      tenant_->accounting.readmitted();
    }
  }
  const std::lock_guard lock(mutex_);
  completion_.timings.queue_ms = waited_ms;
  if (is_first) completion_.usage.cached_tokens = cached_tokens;
}

void Generation::on_preempted() {
  {
    const std::lock_guard lock(tenant_->mutex);
    tenant_->accounting.preempted();
  }
  StreamEvent event;
  event.preempted = true;
  event.is_token = false;
  offer(std::move(event));
}

void Generation::on_token(const OutputEvent& output, const TokenDetails* details) {
  if (has_text_end_) return;  // the token was generated before the step thread learned that the text had ended
  const std::int32_t token = output.token_id;
  const sched::Micros time = output.time_us;
  StreamEvent event;
  event.token_id = token;
  event.time_us = static_cast<std::uint64_t>(time);
  const bool is_end = std::ranges::count(request_.stop_token_ids, token) > 0 ||
                      (!request_.ignore_eos && model_->tokenizer().is_end_of_generation(token));
  const bool was_reasoning = output_.is_in_reasoning();
  if (!is_end)  // needs no lock, because only this thread writes the ids
    event.pieces = output_.push(token, completion_.token_ids.size() >= request_.min_tokens);
  if (details != nullptr && request_.logprobs > 0) event.logprob = details->logprob;
  if (details != nullptr && request_.return_logits_hash) event.logits_hash = details->logits_hash;
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = completion_.token_ids.empty();
    if (is_first) publish_prompt_logprobs();
    // All tokens of a step share the time since the step before.
    if (is_first || time != last_) interval_ms_ = milliseconds(time - last_) / output.n_in_step;
    const double ms = interval_ms_;
    (is_first ? completion_.timings.prefill_ms : completion_.timings.decode_ms) += ms;
    completion_.timings.draft_tokens += output.n_drafts;
    completion_.timings.accepted_draft_tokens += output.n_right;
    last_ = time;
    completion_.token_ids.push_back(token);
    if (was_reasoning || output_.is_in_reasoning()) ++completion_.usage.reasoning_tokens;
    keep_pieces(event);
    if (details != nullptr && request_.return_logits_hash) completion_.logits_hashes.push_back(details->logits_hash);
    if (details != nullptr && request_.logprobs > 0) completion_.logprobs.push_back(details->logprob);
    const std::lock_guard tenant_lock(tenant_->mutex);
    is_first ? tenant_->accounting.first_token(ms) : tenant_->accounting.next_token(ms);
  }
  if (output_.stopped()) {
    has_text_end_ = true;
    wanted_end_ = sched::Finish::kStop;
  }
  offer(std::move(event));
}

void Generation::note_clamps() {
  const std::uint64_t limit = n_prompt_ + completion_.token_ids.size();
  if (completion_.token_ids.size() < request_.max_tokens)
    completion_.timings.clamps.push_back(
        fmt::format("max_tokens {} cut by the context of {}", request_.max_tokens, limit));
}

void Generation::on_finished(sched::Finish finish) {
  finish_ = finish;
  has_finish_ = true;
  if (auto rest = output_.finish(); !rest.empty()) {
    StreamEvent event;
    event.is_token = false;
    event.pieces = std::move(rest);
    {
      const std::lock_guard lock(mutex_);
      keep_pieces(event);
    }
    offer(std::move(event));
  }
  retry();
}

// A reader that is slow still gets all events of a request that ended by itself. A reader that has gone, or was too
// slow for the limit, gets no more events; the completion contains their text.
void Generation::retry() {
  using sched::Finish;
  offer_held();
  if (!has_finish_) return;
  const bool is_by_itself = output_.stopped() || finish_ == Finish::kStop || finish_ == Finish::kLength;
  if (held_.empty() || !is_by_itself || is_abandoned_.load(std::memory_order_relaxed)) end();
}

void Generation::end() {
  using sched::Finish;
  if (sink_failed_) finish_ = Finish::kSinkFailed;  // even if all tokens had been generated by then
  const bool has_stopped = !sink_failed_ && (output_.stopped() || finish_ == Finish::kStop);
  const bool is_cancel = finish_ == Finish::kCancelled || finish_ == Finish::kDeadline;
  {
    const std::lock_guard lock(tenant_->mutex);
    tenant_->accounting.finished(has_stopped || finish_ == Finish::kLength ? RequestEnd::kFinished
                                 : finish_ == Finish::kClientTooSlow       ? RequestEnd::kTooSlow
                                 : is_cancel                               ? RequestEnd::kCancelled
                                                                           : RequestEnd::kFailed);
  }
  held_.clear();
  has_finish_ = false;
  is_held_up_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    completion_.finish_reason =
        has_stopped || (request_.embed && finish_ == Finish::kLength) ? "stop" : to_string(finish_);
    completion_.stop_string = output_.stop_string();
    if (finish_ == Finish::kLength && request_.max_tokens == 0) publish_prompt_logprobs();
    if (finish_ == Finish::kLength && !has_stopped) note_clamps();
    if (finish_ != Finish::kLength) {
      completion_.embedding.clear();
      completion_.score.reset();
    }
    const auto failed = [&](StatusCode code, const char* message, Reason reason = Reason::kNone) {
      if (has_stopped || has_error_) return;
      has_error_ = true;
      error_ = {code, worded(message), 0, reason};
    };
    if (finish_ == Finish::kFault)
      failed(StatusCode::kInternal, "[engine] the device failed in a step of this request; the log says how");
    if (finish_ == Finish::kBadLogits)
      failed(
          StatusCode::kInternal,
          request_.embed
              ? "[engine] the model gave an embedding or a score that is not finite, or an embedding of zeros, which "
                "has no direction: its weights have NaN or infinite values, or overflow"
              : "[engine] the model gave logits without a finite maximum, of which no token can be picked: its "
                "weights have NaN or infinite values, or overflow",
          Reason::kBadLogits);
    if (finish_ == Finish::kShutdown) failed(StatusCode::kUnavailable, "[engine] the engine is closed");
    if (finish_ == Finish::kOutOfPages)
      failed(StatusCode::kExhausted,
             "[engine] the tenant's quota or the pages reserved for others leave too few pages for this request");
    is_done_ = true;
  }
  try {
    sink_->end(index_);
  } catch (...) {  // a client's sink threw
  }
  ended_.notify_all();
}

void Generation::fail_with(Error error) {
  keep(std::move(error));
  finish_ = sched::Finish::kFault;
  end();
}

void Generation::cancel() {
  abandon();
  if (!is_done()) on_cancel();
}

bool Generation::is_done() const {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

Status Generation::error() const {
  const std::lock_guard lock(mutex_);
  if (has_error_) return std::unexpected(error_);
  return {};
}

Status Generation::wait() const {
  if (on_wait) on_wait(-1, [this] { return is_done(); });
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return is_done_; });
  }
  return error();
}

bool Generation::wait_for(double timeout_ms) const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = std::chrono::steady_clock::now();
  timeout_ms = std::max(0.0, timeout_ms);
  if (on_wait && !on_wait(timeout_ms, [this] { return is_done(); })) return false;
  {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, Milliseconds(timeout_ms), [&] { return is_done_; })) return false;
  }
  const Milliseconds passed = std::chrono::steady_clock::now() - begin;
  return sink_->wait_delivered(std::max(0.0, timeout_ms - passed.count()));
}

Completion Generation::completion() const {
  const std::lock_guard lock(mutex_);
  Completion completion = completion_;
  auto& usage = completion.usage;
  usage.completion_tokens = static_cast<std::uint32_t>(completion.token_ids.size());
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  if (has_prediction_) {
    usage.accepted_prediction_tokens = completion.timings.accepted_draft_tokens;
    usage.rejected_prediction_tokens = completion.timings.draft_tokens - completion.timings.accepted_draft_tokens;
  }
  auto& timings = completion.timings;
  if (timings.prefill_ms > 0) timings.prefill_tokens_per_s = 1000.0 * usage.prompt_tokens / timings.prefill_ms;
  if (timings.decode_ms > 0) timings.decode_tokens_per_s = 1000.0 * (usage.completion_tokens - 1) / timings.decode_ms;
  return completion;
}

}  // namespace zinc_rt
