// The public handles: each call goes to EngineCore or Generation.
#include "zinc_rt/engine.h"

#include "base/error.h"
#include "base/log.h"
#include "engine/core.h"
#include "engine/generation.h"

namespace zinc_rt {
namespace {

Status check_quota(const std::string& tenant, const TenantQuota& q) {
  if (q.qos_class != "interactive" && q.qos_class != "standard" && q.qos_class != "batch")
    return fail(StatusCode::kInvalidArgument, "[quota] qos_class \"{}\" is not one of interactive, standard, batch",
                q.qos_class);
  if (!(q.decode_tokens_per_s > 0) || !(q.prefill_tokens_per_s > 0))
    return fail(StatusCode::kInvalidArgument, "[quota] rates are {} and {} tokens/s, more than 0 wanted",
                q.decode_tokens_per_s, q.prefill_tokens_per_s);
  if (q.max_concurrent_slots == 0 || q.max_kv_pages == 0 || q.max_context_tokens == 0)
    return fail(StatusCode::kInvalidArgument,
                "[quota] {} slots, {} pages, {} context tokens; at least 1 of each wanted", q.max_concurrent_slots,
                q.max_kv_pages, q.max_context_tokens);
  const TenantQuota usual;
  if (q.qos_class != usual.qos_class || q.decode_tokens_per_s != usual.decode_tokens_per_s ||
      q.prefill_tokens_per_s != usual.prefill_tokens_per_s || !q.isolation_group.empty())
    log().warn(
        "tenant \"{}\": qos_class, token rates and isolation_group are recorded but not enforced by this version",
        tenant);
  return {};
}

}  // namespace

Engine::Engine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {}

Result<Engine> Engine::open(const std::string& model, const EngineOptions& options) {
  ZRT_TRY(auto core, EngineCore::open(model, options));
  return Engine(std::move(core));
}

void Engine::close() {
  core_->close();
}
bool Engine::is_closed() const {
  return core_->is_closed();
}
std::string Engine::tier() const {
  return core_->info().tier;
}
std::string Engine::arithmetic() const {
  return core_->arithmetic();
}
std::string Engine::model_card() const {
  return core_->model_card();
}
std::string Engine::memory_plan() const {
  return core_->memory_plan();
}
std::string Engine::stats() const {
  return core_->stats();
}
std::uint32_t Engine::vocab_size() const {
  return core_->config().vocab_size;
}
std::uint32_t Engine::model_dim() const {
  return core_->config().model_dim;
}

Result<std::vector<std::int32_t>> Engine::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return core_->tokenizer().encode(text, add_special, parse_special);
}
Result<std::string> Engine::detokenize(std::span<const std::int32_t> ids, bool skip_special) const {
  return core_->tokenizer().decode(ids, skip_special);
}
Result<std::string> Engine::apply_template(std::string_view messages, std::string_view tools,
                                           bool add_generation_prompt, std::string_view extra) const {
  return core_->render(messages, tools, add_generation_prompt, extra);
}
Result<std::vector<float>> Engine::logits(std::span<const std::int32_t> ids, LogitsRows rows,
                                          std::uint32_t chunk) const {
  return core_->logits(ids, rows, chunk);
}
Result<std::vector<float>> Engine::hidden(std::span<const std::int32_t> ids, int layer) const {
  return core_->hidden(ids, layer);
}

Result<Tenant> Engine::tenant(const std::string& name, const std::optional<TenantQuota>& quota) {
  if (quota) ZRT_CHECK_OK(check_quota(name, *quota));
  ZRT_TRY(auto state, core_->tenant(name, quota));
  return Tenant(core_, std::move(state));
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
  ZRT_CHECK_OK(engine_->check_open());
  ZRT_CHECK_OK(check_quota(state_->name, quota));
  const std::lock_guard lock(state_->mutex);
  state_->quota = quota;
  return {};
}
TenantLedger Tenant::ledger() const {
  const std::lock_guard lock(state_->mutex);
  return state_->accounting.ledger();
}
Result<Session> Tenant::session(std::string system) const {
  ZRT_CHECK_OK(engine_->check_open());
  return Session(engine_, state_, std::move(system));
}

Session::Session(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> tenant, std::string system)
    : engine_(std::move(engine)), tenant_(std::move(tenant)), system_(std::move(system)) {}

Result<Stream> Session::stream(const Request& request) const {
  ZRT_TRY(auto generation, Generation::start(engine_, tenant_, request, system_));
  return Stream(std::move(generation));
}

Result<Completion> Session::generate(const Request& request) const {
  ZRT_TRY(auto stream, this->stream(request));
  for (;;) {
    ZRT_TRY(const auto event, stream.next());
    if (!event) return stream.completion();
  }
}

Stream::Stream(std::unique_ptr<Generation> generation) : generation_(std::move(generation)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;
Result<std::optional<StreamEvent>> Stream::next() {
  return generation_->next();
}
void Stream::cancel() {
  generation_->cancel();
}
Completion Stream::completion() const {
  return generation_->completion();
}

}  // namespace zinc_rt
