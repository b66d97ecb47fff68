// Handles tenants and keys that admins create, change and remove while the server runs.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/log.h"
#include "server/tenants/api_keys.h"
#include "server/tenants/tenants.h"

namespace zinc_rt::server {
namespace {

std::int64_t now_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

}  // namespace

// Stores the tenant's settings and keys in the state file. REQUIRES: the caller holds mutex_.
ApiResult<void> TenantRegistry::store(const TenantEntry& entry) {
  StoredTenant stored{entry.name, entry.settings().to_json().dump(), {}};
  for (const Key& key : stored_keys_)
    if (key.tenant == entry.name) stored.keys.push_back({key.hash, key.made_s});
  if (const auto status = store_.put_tenant(stored); !status) return std::unexpected(to_api_error(status.error()));
  return {};
}

ApiResult<TenantRegistry::Created> TenantRegistry::create(const std::string& name, const Json& json) {
  if (!is_good_tenant_name(name)) return wrong_field("id", kGoodTenantName);
  TenantSettings settings;
  if (auto changed = settings.change(json); !changed) return std::unexpected(changed.error());
  const auto key = make_api_key();
  if (!key) return std::unexpected(to_api_error(key.error()));
  const std::lock_guard change(changing_);
  const std::lock_guard lock(mutex_);
  if (tenants_.contains(name))
    return std::unexpected(make_error(409, fmt::format("[tenants] \"{}\" is there already", name)));
  // Once a key exists, callers without a key are refused. So an admin must have a key before that.
  if (std::ranges::none_of(configured_keys_, [](const Key& k) { return k.tenant.empty(); }))
    return std::unexpected(
        make_error(409, "[tenants] tenants need an admin key: start the server with --admin-key or admin_keys"));
  auto entry = make(name, settings, false);
  if (!entry) return std::unexpected(quota_error(entry.error()));
  stored_keys_.push_back({sha256_hex(*key), name, now_s()});
  if (auto stored = store(**entry); !stored) {
    stored_keys_.pop_back();
    forget(name);
    return std::unexpected(stored.error());
  }
  tenants_[name] = *entry;
  return Created{std::move(*entry), *key};
}

ApiResult<std::shared_ptr<TenantEntry>> TenantRegistry::change(const std::string& name, const Json& json) {
  const std::lock_guard change(changing_);  // without mutex_, because setting a quota waits for the engine's step
  const auto entry = find(name);
  if (!entry) return std::unexpected(make_error(404, fmt::format("[tenants] there is no \"{}\"", name)));
  auto settings = entry->settings();
  if (auto changed = settings.change(json); !changed) return std::unexpected(changed.error());
  if (auto set = entry->set_settings(settings); !set) return std::unexpected(set.error());
  if (entry->is_configured) return entry;  // the change lasts until the file is reloaded
  const std::lock_guard lock(mutex_);
  if (auto stored = store(*entry); !stored) return std::unexpected(stored.error());
  return entry;
}

ApiResult<TenantRegistry::NewKey> TenantRegistry::add_key(const std::string& name) {
  const auto key = make_api_key();
  if (!key) return std::unexpected(to_api_error(key.error()));
  const std::lock_guard change(changing_);
  const std::lock_guard lock(mutex_);
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return std::unexpected(make_error(404, fmt::format("[tenants] there is no \"{}\"", name)));
  if (it->second->is_configured)
    return std::unexpected(
        make_error(409, fmt::format("[tenants] the keys of \"{}\" are in the configuration file", name)));
  stored_keys_.push_back({sha256_hex(*key), name, now_s()});
  if (auto stored = store(*it->second); !stored) {
    stored_keys_.pop_back();
    return std::unexpected(stored.error());
  }
  return NewKey{*key, stored_keys_.back().hash};
}

std::vector<TenantRegistry::KnownKey> TenantRegistry::keys(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<KnownKey> out;
  for (const auto* keys : {&configured_keys_, &stored_keys_})
    for (const Key& key : *keys)
      if (key.tenant == name) out.push_back({key.hash, key.made_s, keys == &configured_keys_});
  return out;
}

ApiResult<std::string> TenantRegistry::revoke_key(const std::string& name, std::string_view hash_prefix) {
  const std::lock_guard change(changing_);
  const std::lock_guard lock(mutex_);
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return std::unexpected(make_error(404, fmt::format("[tenants] there is no \"{}\"", name)));
  const auto is_it = [&](const Key& key) { return key.tenant == name && key.hash.starts_with(hash_prefix); };
  if (std::ranges::any_of(configured_keys_, is_it))
    return std::unexpected(make_error(
        409, fmt::format("[keys] this key of \"{}\" is in the configuration file: take it out there, and send SIGHUP",
                         name)));
  const auto n = std::ranges::count_if(stored_keys_, is_it);
  if (n == 0 || hash_prefix.empty())
    return std::unexpected(make_error(404, fmt::format("[keys] \"{}\" has no key whose hash begins so", name)));
  if (n > 1)
    return std::unexpected(make_error(409, fmt::format("[keys] the hashes of {} keys of \"{}\" begin so", n, name)));
  if (configured_keys_.empty() && stored_keys_.size() == 1)
    return std::unexpected(make_error(409, "[keys] this is the last key: without it everyone would be an admin"));
  const auto before = stored_keys_;
  const auto hash = std::ranges::find_if(stored_keys_, is_it)->hash;
  std::erase_if(stored_keys_, is_it);
  if (auto stored = store(*it->second); !stored) {
    stored_keys_ = before;
    return std::unexpected(stored.error());
  }
  return hash;
}

// Removes the tenant from the engine. Its running requests go on.
void TenantRegistry::forget(const std::string& name) {
  if (const auto removed = engine_.remove_tenant(name); !removed) log().error("{}", removed.error().message);
}

ApiResult<void> TenantRegistry::remove(const std::string& name) {
  const std::lock_guard change(changing_);
  std::unique_lock lock(mutex_);
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return std::unexpected(make_error(404, fmt::format("[tenants] there is no \"{}\"", name)));
  if (it->second->is_configured)
    return std::unexpected(make_error(409, fmt::format("[tenants] \"{}\" is in the configuration file", name)));
  if (const auto status = store_.remove_tenant(name); !status) return std::unexpected(to_api_error(status.error()));
  std::erase_if(stored_keys_, [&](const Key& key) { return key.tenant == name; });
  tenants_.erase(it);
  lock.unlock();  // because the next call waits for the engine's step
  forget(name);
  return {};
}

}  // namespace zinc_rt::server
