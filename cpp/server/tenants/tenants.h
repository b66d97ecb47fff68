// TenantRegistry holds the tenants and their API keys, and finds the tenant to whom a request's key belongs. Keys are
// stored as SHA-256 hashes.
// Thread rule: any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/state/state_store.h"
#include "server/tenants/tenant_entry.h"

namespace zinc_rt::server {

// Caller tells who sent a request.
struct Caller {
  std::shared_ptr<TenantEntry> tenant{};
  bool is_admin = false;
  std::string qos_class{};  // the class to which a proxy's objective header maps; empty: none
  bool is_proxied = false;  // a proxy sent the request; its headers about the request are trusted
};

// Maps values of the header x-gateway-inference-objective to classes (interactive, standard, batch).
using Objectives = std::map<std::string, std::string>;

class TenantRegistry {
 public:
  struct Configured {
    std::string name;
    TenantSettings settings;
    std::vector<std::string> key_hashes;
  };
  // Until a key exists, every caller is the tenant "default" and an admin.
  TenantRegistry(Engine engine, StateStore& store) : engine_(std::move(engine)), store_(store) {}

  void set_objectives(Objectives objectives);
  // Applies the whole configuration, at startup and on each reload. The keys of a tenant that a reload no longer lists
  // become invalid. Errors: one key for two tenants; a reload without any key.
  Status configure(const std::vector<Configured>& tenants, const std::vector<std::string>& admin_key_hashes);
  // Returns the owner of the request's key (api_keys.h). Errors: 401; 400 for two keys.
  ApiResult<Caller> authenticate(const HttpRequest& request);

  std::vector<std::shared_ptr<TenantEntry>> list() const;
  std::shared_ptr<TenantEntry> find(const std::string& name) const;  // null if no tenant has this name
  // Creates a tenant at run time and returns its first key, which cannot be read again. Another thread may have removed
  // the tenant when this returns. Errors: 400; 409 if another tenant has the name.
  struct Created {
    std::shared_ptr<TenantEntry> entry;
    std::string key;
  };
  ApiResult<Created> create(const std::string& name, const Json& settings);
  ApiResult<std::shared_ptr<TenantEntry>> change(const std::string& name, const Json& settings);
  struct NewKey {
    std::string key, hash;  // the key is shown only now; only its hash is stored
  };
  ApiResult<NewKey> add_key(const std::string& name);
  // KnownKey is what may be shown about a key. The key itself is never shown.
  struct KnownKey {
    std::string hash;
    // Creation time in seconds since 1970; 0 if not known, as for keys of the configuration file.
    std::int64_t made_s = 0;
    bool is_configured = false;
  };
  std::vector<KnownKey> keys(const std::string& name) const;
  // Revokes the tenant's key whose hash begins with `hash_prefix`. Requests that run with it continue. Returns the
  // whole hash. Errors: 404; 409 for a key of the configuration file, and for a prefix that several hashes share.
  ApiResult<std::string> revoke_key(const std::string& name, std::string_view hash_prefix);
  ApiResult<void> remove(const std::string& name);
  bool is_open_to_all() const;

 private:
  struct Key {
    std::string hash, tenant;  // an empty tenant means an admin
    std::int64_t made_s = 0;   // creation time in seconds since 1970, for keys made at run time
  };
  static Result<std::vector<Key>> keys_of(const std::vector<Configured>& tenants,
                                          const std::vector<std::string>& admin_key_hashes);
  Status apply(const std::vector<Configured>& tenants);
  ApiResult<std::shared_ptr<TenantEntry>> on_behalf_of(const std::shared_ptr<TenantEntry>& proxy, std::string_view id);
  Result<std::shared_ptr<TenantEntry>> make(const std::string& name, const TenantSettings& settings,
                                            bool is_configured);
  ApiResult<void> store(const TenantEntry& entry);
  void forget(const std::string& name);

  Engine engine_;
  StateStore& store_;
  std::mutex changing_;  // serializes changes; locked before mutex_
  mutable std::mutex mutex_;
  // Key: the tenant's name. Guarded by mutex_, like the members below.
  std::map<std::string, std::shared_ptr<TenantEntry>> tenants_;
  Objectives objectives_;
  // Keys of the configuration file, and keys made at run time.
  std::vector<Key> configured_keys_, stored_keys_;
  // Names of the tenants in the last configuration, to find which of them a reload no longer lists.
  std::set<std::string> configured_names_;
  // True after tenants and keys were read from the state file.
  bool has_stored_ = false;
};

}  // namespace zinc_rt::server
