#include "engine/generation.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/log.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kMaxLogprobs = 128;

double milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::unexpected<Error> refuse(const std::string& message) {
  return fail(StatusCode::kInvalidArgument, "[request] {}", message);
}

// Every number that a client gives, checked once.
Status check_parameters(const Request& r, std::uint32_t vocab_size) {
  const auto between = [](const char* name, float value, float low, float high) -> Status {
    if (value >= low && value <= high) return {};  // false for NaN
    return refuse(fmt::format("{} is {}, {} to {} allowed", name, value, low, high));
  };
  ZRT_CHECK_OK(between("temperature", r.temperature, 0, 100));
  ZRT_CHECK_OK(between("top_p", r.top_p, 0, 1));
  ZRT_CHECK_OK(between("min_p", r.min_p, 0, 1));
  ZRT_CHECK_OK(between("repetition_penalty", r.repetition_penalty, 0.01f, 100));
  ZRT_CHECK_OK(between("presence_penalty", r.presence_penalty, -100, 100));
  ZRT_CHECK_OK(between("frequency_penalty", r.frequency_penalty, -100, 100));
  if (r.temperature > 0 && r.temperature < 1e-4f)
    return refuse(fmt::format("temperature is {}, 0 (greedy) or at least 0.0001 allowed", r.temperature));
  if (r.max_tokens < 1) return refuse("max_tokens is 0, at least 1 wanted");
  if (r.logprobs > kMaxLogprobs)
    return refuse(fmt::format("logprobs is {}, at most {} allowed", r.logprobs, kMaxLogprobs));
  if (!(r.deadline_ms >= 0)) return refuse(fmt::format("deadline_ms is {}, 0 or more wanted", r.deadline_ms));
  for (const auto id : r.stop_token_ids)
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocab_size)
      return refuse(fmt::format("stop token id {}, the vocabulary has {}", id, vocab_size));
  return {};
}

Result<std::vector<std::int32_t>> prompt_ids(const EngineCore& core, const Request& request,
                                             const std::string& system) {
  const int given = request.prompt.has_value() + request.messages.has_value() + request.token_ids.has_value();
  if (given != 1) return refuse(fmt::format("{} of prompt, messages and token_ids are given, just one wanted", given));
  if (request.token_ids) {
    for (const auto id : *request.token_ids)
      if (id < 0 || static_cast<std::uint32_t>(id) >= core.config().vocab_size)
        return refuse(fmt::format("token id {}, the vocabulary has {}", id, core.config().vocab_size));
    return *request.token_ids;
  }
  if (request.prompt) return core.tokenizer().encode(*request.prompt, true, true);
  std::string messages = *request.messages;
  if (!system.empty()) {
    auto list = nlohmann::ordered_json::parse(messages, nullptr, false);
    if (list.is_array() && (list.empty() || !list[0].is_object() || list[0].value("role", "") != "system")) {
      list.insert(list.begin(), nlohmann::ordered_json{{"role", "system"}, {"content", system}});
      messages = list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
  }
  ZRT_TRY(const auto text, core.render(messages, {}, true, {}));
  // The template writes the special tokens itself; a BOS that it wrote is not doubled.
  ZRT_TRY(auto ids, core.tokenizer().encode(text, false, true));
  const auto bos = core.tokenizer().bos_id();
  if (core.tokenizer().adds_bos() && bos && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace

Generation::Generation(std::shared_ptr<EngineCore> core, std::shared_ptr<TenantState> tenant, Request request,
                       std::vector<std::int32_t> prompt)
    : core_(std::move(core)),
      tenant_(std::move(tenant)),
      request_(std::move(request)),
      ids_(std::move(prompt)),
      n_prompt_(ids_.size()),
      detokenizer_(core_->tokenizer(), true, ids_.empty() ? std::nullopt : std::optional(ids_.back())),
      stops_(request_.stop),
      started_(Clock::now()),
      last_(started_) {
  completion_.seed = request_.seed ? *request_.seed : std::random_device{}() * 0x100000000ull + std::random_device{}();
  completion_.usage.prompt_tokens = static_cast<std::uint32_t>(n_prompt_);
  sampling_ = {completion_.seed,
               request_.temperature,
               request_.top_k,
               request_.top_p,
               request_.min_p,
               request_.repetition_penalty,
               request_.presence_penalty,
               request_.frequency_penalty};
}

Generation::~Generation() {
  release();
}

Result<std::unique_ptr<Generation>> Generation::start(std::shared_ptr<EngineCore> core,
                                                      std::shared_ptr<TenantState> tenant, const Request& request,
                                                      const std::string& system) {
  const auto rejected = [&](auto&& error) {
    const std::lock_guard lock(tenant->mutex);
    tenant->accounting.rejected();
    return std::unexpected(std::forward<decltype(error)>(error));
  };
  ZRT_CHECK_OK(core->check_open());
  if (auto status = check_parameters(request, core->config().vocab_size); !status) return rejected(status.error());
  auto ids = prompt_ids(*core, request, system);
  if (!ids) return rejected(ids.error());
  if (ids->empty()) return rejected(Error{StatusCode::kInvalidArgument, "[request] the prompt has no tokens", 0});
  const std::uint64_t limit = core->info().max_context, wanted = ids->size() + std::uint64_t{1};
  if (wanted > limit)
    return rejected(fail(StatusCode::kInvalidArgument,
                         "[request] a prompt of {} tokens and one to generate, the context has {}", ids->size(), limit)
                        .error());
  auto generation = std::unique_ptr<Generation>(new Generation(core, tenant, request, *std::move(ids)));
  if (auto status = generation->admit(std::min(limit, wanted - 1 + request.max_tokens)); !status)
    return rejected(status.error());
  return generation;
}

Status Generation::admit(std::uint64_t n_tokens) {
  const auto pages = mem::pages_for(n_tokens);
  const std::lock_guard lock(tenant_->mutex);
  const TenantQuota& quota = tenant_->quota;
  const auto over = [&](const char* what, std::uint64_t wanted, std::uint64_t allowed, StatusCode code) {
    return fail(code, "[quota] tenant \"{}\": {} {} wanted, {} allowed", tenant_->name, wanted, what, allowed);
  };
  if (n_tokens > quota.max_context_tokens)
    return over("context tokens", n_tokens, quota.max_context_tokens, StatusCode::kInvalidArgument);
  if (pages > quota.max_kv_pages) return over("KV pages", pages, quota.max_kv_pages, StatusCode::kInvalidArgument);
  if (tenant_->slots_in_use + 1 > quota.max_concurrent_slots)
    return over("slots", tenant_->slots_in_use + 1, quota.max_concurrent_slots, StatusCode::kExhausted);
  if (tenant_->pages_in_use + pages > quota.max_kv_pages)
    return over("KV pages", tenant_->pages_in_use + pages, quota.max_kv_pages, StatusCode::kExhausted);
  ZRT_TRY(lease_, core_->lease(n_tokens));
  ++tenant_->slots_in_use;
  tenant_->pages_in_use += pages;
  tenant_->accounting.admitted(static_cast<std::uint32_t>(n_prompt_), tenant_->pages_in_use);
  return {};
}

void Generation::release() {
  if (!lease_) return;
  core_->give_back(*lease_);
  const std::lock_guard lock(tenant_->mutex);
  --tenant_->slots_in_use;
  tenant_->pages_in_use -= static_cast<std::uint32_t>(lease_->pages.size());
  lease_.reset();
}

std::optional<std::string> Generation::interrupted() const {
  if (cancelled_.load()) return "cancelled";
  if (request_.deadline_ms > 0 && milliseconds(Clock::now() - started_) > request_.deadline_ms) return "deadline";
  return std::nullopt;
}

Result<bool> Generation::catch_up() {
  // A text that outgrows the range of its RoPE variant is run again with the next one (arch::Family::rope_variant).
  ZRT_TRY(const std::uint32_t variant, core_->rope_variant(ids_.size()));
  if (variant != lease_->rope_variant) n_run_ = 0;
  lease_->rope_variant = variant;
  const std::size_t chunk = core_->prefill_mode() == PrefillMode::kTokenByToken ? 1 : core_->info().chunk_cap;
  // The last token runs with the pick of the next.
  while (n_run_ + 1 < ids_.size()) {
    if (interrupted()) return false;
    const std::size_t n = std::min(chunk, ids_.size() - 1 - n_run_);
    ZRT_CHECK_OK(core_->step(*lease_, ids_, n_run_, n, {}));
    n_run_ += n;
  }
  return true;
}

// Both ways of prefill in pages of their own; in `exact` arithmetic the logits of the last prompt token must have the
// same bits.
Status Generation::validate_prefill() {
  const std::span prompt(ids_.data(), n_prompt_);
  ZRT_TRY(const auto batched, core_->logits(prompt, LogitsRows::kLast, 0));
  ZRT_TRY(const auto single, core_->logits(prompt, LogitsRows::kLast, 1));
  float largest = 0;
  for (std::size_t i = 0; i < batched.size(); ++i) {
    const float difference = std::fabs(batched[i] - single[i]);
    largest = difference <= largest ? largest : difference;
  }
  log().info("prefill of {} tokens in chunks of {} and token by token: largest difference of the last logits {}",
             n_prompt_, core_->info().chunk_cap, largest);
  if (float seen = core_->largest_prefill_difference.load(); !(largest <= seen))
    core_->largest_prefill_difference.store(largest);
  if (!(largest == 0) && core_->arithmetic() == "exact")
    return fail(StatusCode::kInternal,
                "[prefill] batched and token-by-token prefill of {} tokens differ by {}, 0 wanted in exact", n_prompt_,
                largest);
  return {};
}

Status Generation::pick_token() {
  OutputRow row;
  row.position = static_cast<std::uint32_t>(ids_.size());
  row.sampling = sampling_;
  row.history = ids_;
  row.n_prompt = static_cast<std::uint32_t>(n_prompt_);
  const bool wants_row = request_.logprobs > 0 || request_.return_logits_hash;
  const auto keep = [this](std::uint32_t, std::span<const float> logits) { row_.assign(logits.begin(), logits.end()); };
  ZRT_TRY(const auto output,
          core_->step(*lease_, ids_, n_run_, 1, {row},
                      wants_row ? keep : std::function<void(std::uint32_t, std::span<const float>)>{}));
  ++n_run_;
  const auto now = Clock::now();
  const bool is_first = completion_.token_ids.empty();
  {
    const std::lock_guard lock(tenant_->mutex);
    is_first ? tenant_->accounting.first_token(milliseconds(now - started_))
             : tenant_->accounting.next_token(milliseconds(now - last_));
  }
  (is_first ? completion_.timings.prefill_ms : completion_.timings.decode_ms) +=
      milliseconds(now - (is_first ? started_ : last_));
  last_ = now;
  const std::int32_t token = output.tokens[0];
  if (wants_row) record(row_, token);
  ids_.push_back(token);
  completion_.token_ids.push_back(token);
  return {};
}

void Generation::record(std::span<const float> logits, std::int32_t token) {
  if (request_.return_logits_hash) completion_.logits_hashes.push_back(XXH3_64bits(logits.data(), logits.size_bytes()));
  if (request_.logprobs == 0) return;
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(l - max);
  const double log_sum = max + std::log(sum);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t n = std::min<std::size_t>(request_.logprobs, logits.size());
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(n), [&](std::int32_t a, std::int32_t b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  });
  TokenLogprob entry{token, logit(token) - log_sum, {}};
  for (std::size_t i = 0; i < n; ++i) entry.top.emplace_back(order[i], logit(order[i]) - log_sum);
  completion_.logprobs.push_back(std::move(entry));
}

StreamEvent Generation::accept(std::int32_t token) {
  StreamEvent event{token, {}, false, true};
  const bool is_end = (!request_.ignore_eos && core_->tokenizer().is_end_of_generation(token)) ||
                      std::ranges::count(request_.stop_token_ids, token) > 0;
  if (!is_end) event.text = stops_.push(detokenizer_.push(token));
  completion_.text += event.text;
  if (is_end || stops_.stopped()) {
    finish("stop");
  } else if (completion_.token_ids.size() >= request_.max_tokens) {
    finish("length");
  } else if (ids_.size() >= core_->info().max_context) {
    completion_.timings.clamps.push_back(
        fmt::format("max_tokens {} cut by the context of {}", request_.max_tokens, core_->info().max_context));
    finish("length");
  }
  return event;
}

void Generation::finish(std::string reason) {
  ended_ = true;
  completion_.finish_reason = std::move(reason);
  if (!stops_.stopped()) {
    std::string rest = stops_.push(detokenizer_.finish());
    if (!stops_.stopped()) rest += stops_.finish();
    completion_.text += rest;
    if (!rest.empty()) ready_.push_back({0, rest, false, false});
  }
  release();
}

Result<std::optional<StreamEvent>> Generation::next() {
  if (!ready_.empty()) {
    auto event = std::move(ready_.front());
    ready_.pop_front();
    return event;
  }
  if (ended_) return std::nullopt;
  const auto run = [&]() -> Result<bool> {  // false: interrupted
    ZRT_CHECK_OK(core_->check_open());
    if (n_run_ == 0 && core_->prefill_mode() == PrefillMode::kValidate) ZRT_CHECK_OK(validate_prefill());
    ZRT_TRY(const bool complete, catch_up());
    if (!complete || interrupted()) return false;
    ZRT_CHECK_OK(pick_token());
    return true;
  };
  const auto picked = run();
  if (!picked) {
    ended_ = true;
    release();
    return std::unexpected(picked.error());
  }
  if (!*picked) {
    finish(interrupted().value_or("cancelled"));
    return next();
  }
  return accept(completion_.token_ids.back());
}

Completion Generation::completion() const {
  Completion completion = completion_;
  auto& usage = completion.usage;
  usage.completion_tokens = static_cast<std::uint32_t>(completion.token_ids.size());
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  auto& timings = completion.timings;
  if (timings.prefill_ms > 0) timings.prefill_tokens_per_s = 1000.0 * usage.prompt_tokens / timings.prefill_ms;
  if (timings.decode_ms > 0) timings.decode_tokens_per_s = 1000.0 * (usage.completion_tokens - 1) / timings.decode_ms;
  return completion;
}

}  // namespace zinc_rt
