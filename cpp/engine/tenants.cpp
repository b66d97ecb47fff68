// EngineCore's calls about tenants: quotas, reservations and ledgers.
#include "base/error.h"
#include "base/speculate.h"
#include "engine/clock.h"
#include "engine/core.h"

namespace zinc_rt {

Result<sched::Qos> parse_qos(const std::string& name) {
  if (name == "interactive") return sched::Qos::kInteractive;
  if (name == "standard") return sched::Qos::kStandard;
  if (name == "batch") return sched::Qos::kBatch;
  return fail(StatusCode::kInvalidArgument, "[quota] qos_class \"{}\" is not one of interactive, standard, batch",
              name);
}

Status check_quota(const TenantQuota& q) {
  constexpr StatusCode kCode = StatusCode::kInvalidArgument;
  if (const auto qos = parse_qos(q.qos_class); !qos) return std::unexpected(about("qos_class", qos.error()));
  constexpr double kMostTokens = 1e12, kMostWeight = 1e6;
  for (const auto& [name, rate] : {std::pair("decode_tokens_per_s", q.decode_tokens_per_s),
                                   std::pair("prefill_tokens_per_s", q.prefill_tokens_per_s)})
    if (!(rate > 0 && rate <= kMostTokens))
      return fail({kCode, name}, "[quota] {}: a rate of {} tokens/s, more than 0 and at most {} allowed", name, rate,
                  kMostTokens);
  if (!(q.weight >= 1 / kMostWeight && q.weight <= kMostWeight))
    return fail({kCode, "weight"}, "[quota] weight {}, {} to {} allowed", q.weight, 1 / kMostWeight, kMostWeight);
  for (const auto& [name, n] :
       {std::pair("max_concurrent_slots", q.max_concurrent_slots), std::pair("max_kv_pages", q.max_kv_pages),
        std::pair("max_context_tokens", q.max_context_tokens)})
    if (n == 0) return fail({kCode, name}, "[quota] {} is 0, at least 1 wanted", name);
  if (!q.speculate.empty() && !find_speculation(q.speculate))
    return fail({kCode, "speculate"}, "[quota] speculate is \"{}\", auto, off or 1 to {} wanted", q.speculate,
                kMostGuesses);
  if (q.reserved_kv_pages > q.max_kv_pages)
    return fail({kCode, "reserved_kv_pages"}, "[quota] {} pages reserved, {} allowed in all (max_kv_pages)",
                q.reserved_kv_pages, q.max_kv_pages);
  return {};
}

// Converts a quota for the scheduler. REQUIRES: the caller holds names_mutex_, and `q` was checked.
sched::Quota EngineCore::to_sched(const TenantQuota& q) {
  sched::Quota out;
  out.max_concurrent_slots = q.max_concurrent_slots;
  out.max_kv_pages = q.max_kv_pages;
  out.reserved_kv_pages = q.reserved_kv_pages;
  out.max_context_tokens = q.max_context_tokens;
  out.decode_tokens_per_s = q.decode_tokens_per_s;
  out.prefill_tokens_per_s = q.prefill_tokens_per_s;
  out.weight = q.weight;
  out.qos = *parse_qos(q.qos_class);
  if (!q.isolation_group.empty())
    out.isolation_group =
        groups_.try_emplace(q.isolation_group, static_cast<std::uint32_t>(groups_.size())).first->second;
  return out;
}

Result<std::shared_ptr<TenantState>> EngineCore::tenant(const std::string& name,
                                                        const std::optional<TenantQuota>& quota) {
  if (name.empty() || name.size() > 256)
    return fail(StatusCode::kInvalidArgument, "[tenant] a name of {} bytes, 1 to 256 allowed", name.size());
  ZRT_CHECK_OK(check_open());
  if (quota) ZRT_CHECK_OK(check_quota(*quota));
  std::shared_ptr<TenantState> state;
  {
    const std::lock_guard lock(names_mutex_);
    if (const auto it = tenants_.find(name); it != tenants_.end()) state = it->second;
  }
  if (!state) {
    reuse_free_tenants();
    const std::lock_guard lock(names_mutex_);
    if (const auto it = tenants_.find(name); it != tenants_.end()) {
      state = it->second;
    } else {
      const TenantQuota first = quota.value_or(TenantQuota{});
      const auto id = [&]() -> Result<sched::TenantId> {
        const auto book = book_.lock();
        ZRT_CHECK_OK(check_reserved(0, first.reserved_kv_pages));
        return book_.add(to_sched(first), now_us());
      }();
      if (!id) return std::unexpected(id.error());
      timeline_.name_tenant(*id, name);
      poke();
      return tenants_[name] = std::make_shared<TenantState>(name, *id, first, free_tenants_);
    }
  }
  if (quota) ZRT_CHECK_OK(set_quota(*state, *quota));
  return state;
}

// Forgets the tenant's name. Its running and waiting requests go on, and its handles stay valid.
Status EngineCore::remove_tenant(const std::string& name) {
  const std::lock_guard lock(names_mutex_);
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return fail(StatusCode::kNotFound, "[tenant] there is no \"{}\"", name);
  TenantState& tenant = *it->second;
  {
    const std::lock_guard tenant_lock(tenant.mutex);
    tenant.quota.reserved_kv_pages = 0;
    const auto book = book_.lock();
    book_.set_quota(tenant.id, to_sched(tenant.quota), now_us());
  }
  tenants_.erase(it);
  poke();
  return {};
}

// Frees the ids of tenants that have no references left. A tenant that gets a freed id must find no request and no
// cached prefix of the tenant that had it before. While steps are traced no id is freed, because old records would show
// the new tenant's name. REQUIRES: the caller holds no lock, because this function waits for the Turn of each step
// loop.
void EngineCore::reuse_free_tenants() {
  if (timeline_.is_on()) return;
  const auto ids = free_tenants_->take();
  if (ids.empty()) return;
  for (StepLoop* loop : loops()) {
    const StepLoop::Pause pause(*loop);
    for (Replica* replica : loop->replicas())
      for (const auto id : ids) replica->runner().scheduler().forget_tenant(id);
  }
  const auto book = book_.lock();
  for (const auto id : ids) book_.remove(id);
}

// Checks that every model has enough pages for all reservations, after one tenant's reservation changes from `before`
// to `now`. REQUIRES: the caller holds names_mutex_ and the book's lock.
Status EngineCore::check_reserved(std::uint32_t before, std::uint32_t now) const {
  const std::uint64_t reserved = book_.total_reserved() - before + now;
  for (const auto& model : models_) ZRT_CHECK_OK(check_has_pages(*model, reserved));
  return {};
}

// Fails if the tenants together reserve more pages than the model allows. Errors: kExhausted.
Status EngineCore::check_has_pages(const Model& model, std::uint64_t reserved) {
  const std::uint64_t most = model.reservable_pages();
  if (reserved <= most) return {};
  return fail({StatusCode::kExhausted, "reserved_kv_pages"},
              "[quota] {} pages reserved in all, model \"{}\" has {} to reserve", reserved, model.name(), most);
}

Status EngineCore::set_quota(TenantState& tenant, const TenantQuota& quota) {
  ZRT_CHECK_OK(check_open());
  ZRT_CHECK_OK(check_quota(quota));
  const std::lock_guard lock(names_mutex_);
  {
    const auto book = book_.lock();
    ZRT_CHECK_OK(check_reserved(book_[tenant.id].quota.reserved_kv_pages, quota.reserved_kv_pages));
    book_.set_quota(tenant.id, to_sched(quota), now_us());
  }
  {
    const std::lock_guard tenant_lock(tenant.mutex);
    tenant.quota = quota;
  }
  poke();
  return {};
}

TenantLedger EngineCore::ledger(const TenantState& tenant) {
  TenantUsage usage;
  {
    const auto book = book_.lock();
    const sched::Tenant& t = book_[tenant.id];
    usage = {t.slots, t.waiting, t.pages, t.pages_peak, t.service};
  }
  const std::lock_guard lock(tenant.mutex);
  return tenant.accounting.ledger(usage);
}

Result<CachedPrefix> EngineCore::cached_prefix(const TenantState& tenant, Request request, const std::string& system) {
  ZRT_TRY(const auto model, this->model(request.model));
  ZRT_CHECK_OK(Generation::check(request, *model));
  ZRT_TRY(const auto prompt, Generation::take_prompt(*model, request, system, prompt_room(*model, tenant, false)));
  ZRT_TRY(const auto placed, place(*model, tenant, request.cache_salt, prompt.ids));
  return CachedPrefix{static_cast<std::uint32_t>(prompt.ids.size()), placed.cached_tokens,
                      placed.replica->device.index};
}

Result<std::uint32_t> EngineCore::flush_prefixes(const TenantState& tenant) {
  ZRT_CHECK_OK(check_open());
  std::uint32_t n = 0;
  for (StepLoop* loop : loops()) {
    const StepLoop::Pause pause(*loop);
    for (Replica* replica : loop->replicas()) n += replica->runner().scheduler().flush_prefixes(tenant.id);
  }
  poke();
  return n;
}

}  // namespace zinc_rt
