#include "server/tenants/tenants.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "base/error.h"
#include "server/tenants/api_keys.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxBehalf = 1024;  // how many tenants may be created for the callers of one proxy

// Returns the header x-gateway-NAME of the Gateway API or, if it is absent, llm-d's header for the same purpose.
std::string_view either_header(const HttpRequest& request, std::string_view name) {
  const auto value = request.header(fmt::format("x-gateway-{}", name));
  return value.empty() ? request.header(fmt::format("x-llm-d-{}", name)) : value;
}

}  // namespace

Result<std::shared_ptr<TenantEntry>> TenantRegistry::make(const std::string& name, const TenantSettings& settings,
                                                          bool is_configured) {
  ZRT_TRY(auto tenant, engine_.tenant(name, settings.quota));
  return std::make_shared<TenantEntry>(name, std::move(tenant), settings, is_configured);
}

bool TenantRegistry::is_open_to_all() const {
  const std::lock_guard lock(mutex_);
  return configured_keys_.empty() && stored_keys_.empty();
}

ApiResult<Caller> TenantRegistry::authenticate(const HttpRequest& request) {
  std::shared_ptr<TenantEntry> entry;
  {
    const std::lock_guard lock(mutex_);
    if (configured_keys_.empty() && stored_keys_.empty()) return Caller{tenants_.at("default"), true};
    ZRT_TRY(const auto given, api_key_in(request));
    auto refused = make_error(401, given.empty() ? "[keys] no API key is given; send \"Authorization: Bearer KEY\""
                                                 : "[keys] this API key is not known here");
    refused.code = "invalid_api_key";
    if (given.empty()) return std::unexpected(std::move(refused));
    const auto hash = sha256_hex(given);
    const Key* found = nullptr;  // all keys are compared, each in constant time
    for (const auto* keys : {&configured_keys_, &stored_keys_})
      for (const Key& key : *keys)
        if (key.hash.size() == hash.size() && CRYPTO_memcmp(key.hash.data(), hash.data(), hash.size()) == 0)
          found = &key;
    if (found == nullptr) return std::unexpected(std::move(refused));
    if (found->tenant.empty()) return Caller{nullptr, true};
    entry = tenants_.at(found->tenant);  // exists, because a tenant's keys are removed with it
  }
  if (!entry->settings().is_proxy) return Caller{std::move(entry)};
  Caller caller{entry};
  caller.is_proxied = true;
  if (const auto id = either_header(request, "inference-fairness-id"); !id.empty()) {
    auto tenant = on_behalf_of(entry, id);
    if (!tenant) return std::unexpected(tenant.error());
    caller.tenant = std::move(*tenant);
  }
  const auto objective = either_header(request, "inference-objective");
  const std::lock_guard lock(mutex_);
  if (const auto it = objectives_.find(std::string(objective)); it != objectives_.end()) caller.qos_class = it->second;
  return caller;
}

void TenantRegistry::set_objectives(Objectives objectives) {
  const std::lock_guard lock(mutex_);
  objectives_ = std::move(objectives);
}

// Returns the tenant `id`, for which the proxy sent a request. If it does not exist, creates it with the proxy's
// limits.
ApiResult<std::shared_ptr<TenantEntry>> TenantRegistry::on_behalf_of(const std::shared_ptr<TenantEntry>& proxy,
                                                                     std::string_view id) {
  if (!is_good_tenant_name(id))
    return std::unexpected(make_error(400, fmt::format("[keys] inference-fairness-id: {}", kGoodTenantName)));
  if (auto known = find(std::string(id))) return known;
  const std::string name = proxy->name + "/" + std::string(id);
  const std::lock_guard lock(mutex_);
  if (const auto it = tenants_.find(name); it != tenants_.end()) return it->second;
  const auto n = std::ranges::count_if(tenants_, [&](const auto& t) { return t.first.starts_with(proxy->name + "/"); });
  if (static_cast<std::size_t>(n) >= kMaxBehalf) {
    auto error = make_error(
        429, fmt::format("[keys] {} callers of proxy \"{}\" are known, {} allowed", n, proxy->name, kMaxBehalf));
    error.code = "rate_limit_exceeded";
    error.retry_after_s = 60;
    return std::unexpected(std::move(error));
  }
  auto settings = proxy->settings();
  settings.is_proxy = false;
  auto entry = make(name, settings, true);
  if (!entry) return std::unexpected(to_api_error(entry.error()));
  return tenants_[name] = std::move(*entry);
}

std::vector<std::shared_ptr<TenantEntry>> TenantRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<TenantEntry>> out;
  for (const auto& [name, entry] : tenants_) out.push_back(entry);
  return out;
}

std::shared_ptr<TenantEntry> TenantRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = tenants_.find(name);
  return it == tenants_.end() ? nullptr : it->second;
}

}  // namespace zinc_rt::server
