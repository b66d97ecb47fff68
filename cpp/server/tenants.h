// Who calls: API keys to tenants, with what the engine and the server allow each. Keys are kept as SHA-256 hashes.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/json_in.h"
#include "server/state_store.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// Of one tenant: the engine's quota and the limits that the server itself keeps. 0: none.
struct TenantSettings {
  TenantQuota quota;
  double requests_per_minute = 0, tokens_per_minute = 0;
  std::uint32_t max_open_requests = 4096;  // counted in choices
  bool is_proxy = false;  // its requests may be on behalf of others, named in x-gateway-inference-fairness-id

  // For who has the machine to itself: no bound on slots, pages and rates.
  static TenantSettings unlimited();
  Json to_json() const;
  // `json` changes some of the fields. Errors: 400 naming the field.
  ApiResult<void> change(const Json& json);
};

// So many a minute, saved up for a minute; may be overdrawn by what is known only afterwards.
class MinuteBucket {
 public:
  using Clock = std::chrono::steady_clock;
  void set_rate(double per_minute);
  // Seconds until it has `amount`; 0: it has.
  double wait_s(double amount, Clock::time_point now);
  void take(double amount, Clock::time_point now);
  double rate() const { return rate_; }
  double level(Clock::time_point now);

 private:
  double rate_ = 0, level_ = 0;
  Clock::time_point last_ = Clock::now();
};

class TenantEntry {
 public:
  TenantEntry(std::string name, Tenant tenant, TenantSettings settings, bool is_configured);
  const std::string name;
  std::atomic<bool> is_configured;  // in the configuration file, else made at run time
  const Tenant tenant;

  TenantSettings settings() const;
  ApiResult<void> set_settings(const TenantSettings& settings);
  // A request comes; it and its choices (prompts times n, as the engine's queue counts them) are open until
  // `close_request`. Errors: 429 with the time to wait.
  ApiResult<void> open_request(std::uint64_t n_choices, Headers& rate_headers);
  // What is left of its rates, where it has some.
  void tell_rates(Headers& headers);
  void close_request(std::uint64_t n_choices, std::uint64_t tokens);
  std::uint32_t n_open() const;

 private:
  mutable std::mutex mutex_;
  TenantSettings settings_;
  void put_rates(Headers& headers, MinuteBucket::Clock::time_point now);  // REQUIRES: mutex_
  MinuteBucket requests_, tokens_;
  std::uint32_t n_open_ = 0;
  std::uint64_t n_choices_ = 0;
};

struct Caller {
  std::shared_ptr<TenantEntry> tenant;
  bool is_admin = false;
};

// Names stand in paths (/v1/tenants/{id}), logs and metrics. `me`, which there is the caller, is none.
bool is_good_tenant_name(std::string_view name);
inline constexpr const char* kGoodTenantName = "1 to 128 letters, digits and -_.@: wanted, and neither me, . nor ..";

std::string sha256_hex(std::string_view text);
// "zrt-" and 43 random characters. Errors: kUnavailable when the system has no randomness.
Result<std::string> make_api_key();

class TenantRegistry {
 public:
  struct Configured {
    std::string name;
    TenantSettings settings;
    std::vector<std::string> key_hashes;
  };
  // Without any key, every caller is the tenant "default", and an admin.
  TenantRegistry(Engine engine, StateStore& store) : engine_(std::move(engine)), store_(store) {}

  // The whole configuration; called again on reload. Tenants that are gone lose their keys. Errors: one key for two,
  // and a reload that leaves no key at all.
  Status configure(const std::vector<Configured>& tenants, const std::vector<std::string>& admin_key_hashes);
  // Of the headers Authorization (Bearer), api-key or x-api-key. Errors: 401; 400 for two keys.
  ApiResult<Caller> authenticate(const HttpRequest& request);

  std::vector<std::shared_ptr<TenantEntry>> list() const;
  std::shared_ptr<TenantEntry> find(const std::string& name) const;  // null: there is none
  // Run-time tenants. The new key, shown once. Errors: 400, 409 for a name that is taken. What comes back may have been
  // removed meanwhile.
  struct Created {
    std::shared_ptr<TenantEntry> entry;
    std::string key;
  };
  ApiResult<Created> create(const std::string& name, const Json& settings);
  ApiResult<std::shared_ptr<TenantEntry>> change(const std::string& name, const Json& settings);
  struct NewKey {
    std::string key, hash;  // the key is shown once
  };
  ApiResult<NewKey> add_key(const std::string& name);
  // What is told of a key: never the key itself.
  struct KnownKey {
    std::string hash;
    std::int64_t made_s = 0;  // since 1970; 0: not known, as of all in the configuration file
    bool is_configured = false;
  };
  std::vector<KnownKey> keys(const std::string& name) const;
  // The tenant's key whose hash begins so is refused from now on; what it asked for goes on. Its whole hash. Errors:
  // 404; 409 for a key of the configuration file, and for a beginning that several have.
  ApiResult<std::string> revoke_key(const std::string& name, std::string_view hash_prefix);
  ApiResult<void> remove(const std::string& name);
  bool is_open_to_all() const;

 private:
  struct Key {
    std::string hash, tenant;  // tenant empty: an admin
    std::int64_t made_s = 0;   // of one made at run time
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
  std::mutex changing_;  // one change at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<TenantEntry>> tenants_;
  std::vector<Key> configured_keys_, stored_keys_;
  std::set<std::string> configured_names_;
  bool has_stored_ = false;
};

}  // namespace zinc_rt::server
