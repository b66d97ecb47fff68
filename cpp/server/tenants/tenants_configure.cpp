// Handles tenants and keys of the configuration file, which is read at startup and again on reload.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "server/tenants/tenants.h"

namespace zinc_rt::server {

Result<std::vector<TenantRegistry::Key>> TenantRegistry::keys_of(const std::vector<Configured>& tenants,
                                                                 const std::vector<std::string>& admin_key_hashes) {
  std::vector<Key> keys;
  for (const auto& hash : admin_key_hashes) keys.push_back({hash, ""});
  for (const auto& tenant : tenants)
    for (const auto& hash : tenant.key_hashes) {
      const auto other = std::ranges::find(keys, hash, &Key::hash);
      if (other != keys.end() && other->tenant != tenant.name)
        return fail(StatusCode::kInvalidArgument, "[config] {} and tenant \"{}\" have the same key, sha256:{}",
                    other->tenant.empty() ? "an admin" : fmt::format("tenant \"{}\"", other->tenant), tenant.name,
                    hash);
      keys.push_back({hash, tenant.name});
    }
  return keys;
}

// Applies the settings of all tenants or, on an error, of none. REQUIRES: the caller holds mutex_.
Status TenantRegistry::apply(const std::vector<Configured>& tenants) {
  std::vector<std::pair<std::shared_ptr<TenantEntry>, TenantSettings>> changed;
  std::vector<std::string> made;
  const auto undo = [&](const std::string& name, const std::string& why) {
    for (const auto& [entry, before] : changed)
      if (const auto undone = entry->set_settings(before); !undone) log().error("{}", undone.error().message);
    for (const auto& one : made) {
      tenants_.erase(one);
      forget(one);
    }
    return fail(StatusCode::kInvalidArgument, "[config] tenant {}: {}", name, why);
  };
  for (const auto& configured : tenants) {
    if (const auto known = tenants_.find(configured.name); known != tenants_.end()) {
      changed.emplace_back(known->second, known->second->settings());
      if (const auto set = known->second->set_settings(configured.settings); !set)
        return undo(configured.name, set.error().message);
    } else {
      auto entry = make(configured.name, configured.settings, true);
      if (!entry) return undo(configured.name, entry.error().message);
      tenants_[configured.name] = std::move(*entry);
      made.push_back(configured.name);
    }
  }
  return {};
}

Status TenantRegistry::configure(const std::vector<Configured>& tenants,
                                 const std::vector<std::string>& admin_key_hashes) {
  std::vector<StoredTenant> stored;
  if (!has_stored_) {
    ZRT_TRY(stored, store_.tenants());
    has_stored_ = true;
  }
  const std::lock_guard change(changing_);
  const std::lock_guard lock(mutex_);
  // Keys are read first, so that an error in them changes nothing.
  ZRT_TRY(auto keys, keys_of(tenants, admin_key_hashes));
  const auto is_in_file = [&](const std::string& name) {
    return std::ranges::find(tenants, name, &Configured::name) != tenants.end();
  };
  const auto is_kept = [&](const Key& key) { return !is_in_file(key.tenant); };  // for keys that were made at run time
  if (keys.empty() && std::ranges::none_of(stored_keys_, is_kept) &&
      !(configured_keys_.empty() && stored_keys_.empty()))
    return fail(StatusCode::kInvalidArgument,
                "[config] no key is left, which would make everyone an admin; to open the server, start it anew");
  ZRT_CHECK_OK(apply(tenants));
  configured_keys_ = std::move(keys);
  // For tenants in the file, settings that were made at run time are dropped. Admins can change and remove a tenant
  // that was removed from the file, like any other.
  std::erase_if(stored_keys_, [&](const Key& key) { return !is_kept(key); });
  for (const auto& [name, entry] : tenants_)
    if (is_in_file(name) || configured_names_.contains(name)) entry->is_configured = is_in_file(name);
  configured_names_.clear();
  for (const auto& tenant : tenants) configured_names_.insert(tenant.name);
  for (const auto& tenant : stored) {
    if (tenants_.contains(tenant.name)) continue;
    const auto json = parse_json(tenant.settings);
    TenantSettings settings;
    if (!json || !settings.change(*json))
      return fail(StatusCode::kCorrupt, "[state] the settings of tenant {} cannot be read", tenant.name);
    ZRT_TRY(auto entry, make(tenant.name, settings, false));
    tenants_[tenant.name] = std::move(entry);
    for (const auto& key : tenant.keys) stored_keys_.push_back({key.hash, tenant.name, key.made_s});
  }
  if (!configured_keys_.empty() || !stored_keys_.empty() || tenants_.contains("default")) return {};
  auto open = TenantSettings::unlimited();
  open.quota.max_context_tokens = INT32_MAX;
  open.quota.qos_class = "interactive";
  ZRT_TRY(auto entry, make("default", open, true));
  tenants_["default"] = std::move(entry);
  return {};
}

}  // namespace zinc_rt::server
