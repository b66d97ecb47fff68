// Implements the public handles (zinc_rt/*.h). Each call is passed to EngineCore or Generation.
#include "zinc_rt/engine.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/conversation.h"
#include "base/error.h"
#include "engine/clock.h"
#include "engine/core.h"
#include "engine/queue_sink.h"

namespace zinc_rt {

Engine::Engine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {}

Result<Engine> Engine::open(const std::string& model, const EngineOptions& options) {
  ZRT_TRY(auto core, EngineCore::open(model, options));
  return Engine(std::move(core));
}

Result<Engine> Engine::open_without_threads(const std::string& model, const EngineOptions& options) {
  ZRT_TRY(auto core, EngineCore::open(model, options, Drive::kPump));
  return Engine(std::move(core));
}

Result<Pumped> Engine::pump() {
  if (!core_->is_pumped())
    return fail(StatusCode::kUnavailable, "[engine] the engine has threads of its own, and pump() is for one without");
  const auto turn = core_->pump();
  if (turn.ran) return Pumped{true, 0};
  if (turn.wake_at == sched::kNever) return Pumped{false, std::numeric_limits<double>::infinity()};
  return Pumped{false, std::max(0.0, static_cast<double>(turn.wake_at - now_us()) * 1e-3)};
}

Result<Engine> Engine::start(const EngineOptions& options) {
  ZRT_TRY(auto core, EngineCore::start_empty(options));
  return Engine(std::move(core));
}

Status Engine::add_model(const std::string& path, const std::string& name, const EngineOptions& options) {
  return core_->add_model(path, name, options);
}
Status Engine::remove_model(const std::string& name) {
  return core_->remove_model(name);
}
std::vector<std::string> Engine::models() const {
  return core_->model_names();
}
bool Engine::drain(double timeout_ms) {
  return core_->drain(timeout_ms);
}
void Engine::close() {
  core_->close();
}
bool Engine::is_closed() const {
  return core_->is_closed();
}
std::string Engine::tier() const {
  const auto first = core_->find_model({});
  return first ? first->info().tier : std::string();
}
std::string Engine::arithmetic() const {
  const auto first = core_->find_model({});
  return first ? std::string(to_string(first->info().arithmetic)) : std::string();
}
Result<ModelCard> Engine::model_card(const std::string& model) const {
  ZRT_TRY(const auto found, core_->known_model(model));
  return found->card();
}
Result<ModelMemory> Engine::memory_plan(const std::string& model) const {
  ZRT_TRY(const auto found, core_->known_model(model));
  return found->memory();
}
std::string Engine::chat_template(const std::string& model) const {
  const auto found = core_->find_model(model);
  return found ? found->template_text() : std::string();
}
EngineStats Engine::stats() const {
  return core_->stats();
}
Status Engine::start_trace(std::uint32_t n_records) {
  return core_->timeline().start(n_records);
}
Status Engine::stop_trace(const std::string& path) {
  core_->timeline().stop();
  return core_->timeline().write_json(path);
}
std::uint32_t Engine::vocab_size(const std::string& model) const {
  const auto found = core_->find_model(model);
  return found ? found->config().vocab_size : 0;
}
std::uint32_t Engine::model_dim(const std::string& model) const {
  const auto found = core_->find_model(model);
  return found ? found->config().model_dim : 0;
}

Result<std::vector<std::int32_t>> Engine::tokenize(std::string_view text, bool add_special, bool parse_special,
                                                   const std::string& model) const {
  ZRT_TRY(const auto found, core_->known_model(model));
  return found->tokenizer().encode(text, add_special, parse_special);
}
Result<std::string> Engine::detokenize(std::span<const std::int32_t> ids, bool skip_special,
                                       const std::string& model) const {
  ZRT_TRY(const auto found, core_->known_model(model));
  return found->tokenizer().decode(ids, skip_special);
}
std::string Engine::token_bytes(std::int32_t id, const std::string& model) const {
  const auto found = core_->find_model(model);
  return found ? std::string(found->tokenizer().token_bytes(id)) : std::string();
}
Result<std::string> Engine::apply_template(std::string_view messages, std::string_view tools,
                                           bool add_generation_prompt, std::string_view extra, const std::string& model,
                                           bool continue_final_message) const {
  Request request;
  request.model = model;
  request.messages = messages;
  request.tools = tools;
  request.chat_template_kwargs = extra;
  request.add_generation_prompt = add_generation_prompt;
  request.continue_final_message = continue_final_message;
  return apply_template(std::move(request));
}
Result<std::string> Engine::apply_template(Request request) const {
  ZRT_TRY(const auto found, core_->known_model(request.model));
  ZRT_TRY(auto chat, take_conversation(request));
  ZRT_TRY(MarkedText text,
          found->render(std::move(chat), {.add_generation_prompt =
                                              request.add_generation_prompt.value_or(!request.continue_final_message),
                                          .continue_final_message = request.continue_final_message}));
  return text.take_text();
}
Result<std::vector<std::int32_t>> Engine::prompt_tokens(Request request, std::optional<bool> add_special) const {
  ZRT_TRY(const auto found, core_->known_model(request.model));
  // Prompts that are longer than any context must be counted too.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 24;
  auto prompt = Generation::take_prompt(*found, request, {}, {kMost, "a count"}, add_special);
  if (!prompt) return std::unexpected(std::move(prompt).error());
  return std::move(prompt->ids);
}
Result<std::vector<float>> Engine::logits(std::span<const std::int32_t> ids, LogitsRows rows, std::uint32_t chunk,
                                          const std::string& model, const StopAsked& is_stopped) const {
  ZRT_TRY(const auto found, core_->model(model));
  return core_->logits(*found, ids, rows, chunk, is_stopped);
}
Result<std::vector<float>> Engine::hidden(std::span<const std::int32_t> ids, int layer, const std::string& model,
                                          const StopAsked& is_stopped) const {
  ZRT_TRY(const auto found, core_->model(model));
  return core_->hidden(*found, ids, layer, is_stopped);
}

Result<Tenant> Engine::tenant(const std::string& name, const std::optional<TenantQuota>& quota) {
  ZRT_TRY(auto state, core_->tenant(name, quota));
  return Tenant(core_, std::move(state));
}
Status Engine::remove_tenant(const std::string& name) {
  return core_->remove_tenant(name);
}

Tenant::Tenant(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> state)
    : engine_(std::move(engine)), state_(std::move(state)) {}
const std::string& Tenant::name() const {
  return state_->name;
}
TenantQuota Tenant::quota() const {
  const std::lock_guard lock(state_->mutex);
  return state_->quota;
}
Status Tenant::set_quota(const TenantQuota& quota) {
  return engine_->set_quota(*state_, quota);
}
TenantLedger Tenant::ledger() const {
  return engine_->ledger(*state_);
}
Result<std::uint32_t> Tenant::flush_prefix_cache() const {
  return engine_->flush_prefixes(*state_);
}
Result<Session> Tenant::session(std::string system) const {
  ZRT_CHECK_OK(engine_->check_open());
  return Session(engine_, state_, std::move(system));
}

Session::Session(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> tenant, std::string system)
    : engine_(std::move(engine)), tenant_(std::move(tenant)), system_(std::move(system)) {}

Result<CachedPrefix> Session::cached_prefix(Request request) const {
  return engine_->cached_prefix(*tenant_, std::move(request), system_);
}

Result<std::uint32_t> Session::save_prefix(Request request, const std::string& path,
                                           const StopAsked& is_stopped) const {
  return engine_->save_prefix(*tenant_, std::move(request), system_, path, is_stopped);
}

Result<std::uint32_t> Session::load_prefix(const std::string& path, const std::string& model,
                                           const std::string& cache_salt) const {
  return engine_->load_prefix(*tenant_, path, model, cache_salt);
}

const std::string& Session::tenant_name() const {
  return tenant_->name;
}

Result<RequestHandle> Session::submit(Request request, std::shared_ptr<Sink> sink) const {
  ZRT_TRY(auto generations, engine_->submit(tenant_, std::move(request), system_, std::move(sink)));
  return RequestHandle(std::move(generations));
}

Result<Stream> Session::stream(const Request& request) const {
  // The queue has room for all events: one per token, one for text held back to the end, and some for preemptions.
  const std::size_t all = (std::size_t{request.max_tokens} + 64) * std::max(1u, request.n);
  auto queue = std::make_shared<QueueSink>(request.stream_capacity > 0 ? request.stream_capacity : all, request.n,
                                           engine_->waiter());
  ZRT_TRY(auto handle, submit(request, queue));
  return Stream(std::move(handle), std::move(queue));
}

Result<Completion> Session::generate(const Request& request) const {
  ZRT_TRY(auto stream, this->stream(request));
  for (;;) {
    ZRT_TRY(const auto event, stream.next());
    if (!event) return stream.completion();
  }
}

RequestHandle::RequestHandle(std::vector<std::shared_ptr<Generation>> generations)
    : generations_(std::move(generations)) {}

void RequestHandle::cancel() {
  for (const auto& g : generations_) g->cancel();
}
bool RequestHandle::is_done() const {
  return std::ranges::all_of(generations_, [](const auto& g) { return g->is_done(); });
}
Status RequestHandle::wait() const {
  Status first;
  for (const auto& g : generations_)
    if (auto status = g->wait(); first && !status) first = std::move(status);
  return first;
}

bool RequestHandle::wait_for(double timeout_ms) const {
  const auto begin = std::chrono::steady_clock::now();
  return std::ranges::all_of(generations_, [&](const auto& g) {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    return g->wait_for(timeout_ms - passed.count());
  });
}

Completion RequestHandle::completion() const {
  Completion all = generations_.front()->completion();
  if (generations_.size() == 1) return all;
  Usage usage = all.usage;
  usage.completion_tokens = 0;
  std::vector<Completion> choices;
  for (const auto& g : generations_) {
    choices.push_back(g->completion());
    usage.completion_tokens += choices.back().usage.completion_tokens;
  }
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  all.usage = usage;
  all.choices = std::move(choices);
  return all;
}

Stream::Stream(RequestHandle handle, std::shared_ptr<QueueSink> queue)
    : handle_(std::move(handle)), queue_(std::move(queue)) {}

Stream::~Stream() {
  if (queue_) handle_.cancel();  // does nothing if the request has ended
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  if (queue_) handle_.cancel();
  handle_ = std::move(other.handle_);
  queue_ = std::move(other.queue_);
  return *this;
}

Result<std::optional<StreamEvent>> Stream::next() {
  bool is_there = true;
  return next_within(-1, is_there);
}

Result<std::optional<StreamEvent>> Stream::next_within(double timeout_ms, bool& is_there) {
  auto event = queue_->pop(timeout_ms, is_there);
  if (event || !is_there) return event;
  ZRT_CHECK_OK(handle_.wait());
  return std::nullopt;
}

void Stream::cancel() {
  handle_.cancel();
}
int Stream::readable_fd() {
  return queue_->readable_fd();
}

}  // namespace zinc_rt
