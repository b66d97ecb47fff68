#include "server/tenants.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "base/log.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxBehalf = 1024;  // tenants made for a proxy's callers

ApiError conflict(std::string message, int status = 409) {
  ApiError error;
  error.status = status;
  error.message = std::move(message);
  return error;
}

// What the engine refused in a quota; only one of its fields can ask for more than there is.
ApiError quota_error(const Error& error) {
  auto out = to_api_error(error);
  if (out.status == 400 && error.message.find("reserved") != std::string::npos) out.param = "reserved_kv_pages";
  return out;
}

std::int64_t now_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

// Behind "Bearer", in any case, and spaces; empty: another scheme.
std::string_view bearer_of(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  const auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  if (!std::ranges::equal(header.substr(0, kScheme.size()), kScheme, {}, lower)) return {};
  header.remove_prefix(std::min(header.find_first_not_of(' ', kScheme.size() - 1), header.size()));
  return header;
}

// In any of the forms that clients know; empty: none. Errors: 400 for two keys, of which a proxy could believe another.
ApiResult<std::string_view> key_of(const HttpRequest& request) {
  std::string_view key;
  for (const auto given :
       {bearer_of(request.header("authorization")), request.header("api-key"), request.header("x-api-key")}) {
    if (!key.empty() && !given.empty() && given != key)
      return std::unexpected(conflict("[keys] two API keys are given, in Authorization, api-key or x-api-key", 400));
    if (!given.empty()) key = given;
  }
  return key;
}

}  // namespace

bool is_good_tenant_name(std::string_view name) {
  constexpr std::string_view kTaken[] = {"me", ".", ".."};
  if (std::ranges::find(kTaken, name) != std::end(kTaken)) return false;
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@' || c == ':';
  });
}

std::string sha256_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_Digest(text.data(), text.size(), digest, &n, EVP_sha256(), nullptr);
  std::string out;
  for (unsigned i = 0; i < n; ++i) fmt::format_to(std::back_inserter(out), "{:02x}", digest[i]);
  return out;
}

Result<std::string> make_api_key() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  unsigned char bytes[43];
  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return fail(StatusCode::kUnavailable, "[keys] the system gave no random bytes");
  std::string key = "zrt-";
  for (const unsigned char b : bytes) key += kAlphabet[b & 63];
  return key;
}

TenantSettings TenantSettings::unlimited() {
  TenantSettings settings;
  settings.quota.max_concurrent_slots = settings.quota.max_kv_pages = INT32_MAX;
  settings.quota.decode_tokens_per_s = settings.quota.prefill_tokens_per_s = 1e9;
  return settings;
}

Json TenantSettings::to_json() const {
  return Json{{"qos_class", quota.qos_class},
              {"weight", quota.weight},
              {"max_concurrent_slots", quota.max_concurrent_slots},
              {"max_kv_pages", quota.max_kv_pages},
              {"reserved_kv_pages", quota.reserved_kv_pages},
              {"max_context_tokens", quota.max_context_tokens},
              {"decode_tokens_per_s", quota.decode_tokens_per_s},
              {"prefill_tokens_per_s", quota.prefill_tokens_per_s},
              {"isolation_group", quota.isolation_group},
              {"requests_per_minute", requests_per_minute},
              {"tokens_per_minute", tokens_per_minute},
              {"max_open_requests", max_open_requests},
              {"proxy", is_proxy}};
}

ApiResult<void> TenantSettings::change(const Json& json) {
  Fields fields(json);
  ApiResult<void> result;
  const auto number = [&](const char* name, double& out, double low, double high) {
    if (!result) return;
    auto value = fields.get_number(name, low, high);
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = **value;
  };
  const auto count = [&](const char* name, std::uint32_t& out, std::int64_t low) {
    if (!result) return;
    auto value = fields.get_int(name, low, INT32_MAX);
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = static_cast<std::uint32_t>(**value);
  };
  const auto take = [&](auto value, auto& out) {
    if (!result) return;
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = **value;
  };
  take(fields.get_choice("qos_class", {"interactive", "standard", "batch"}), quota.qos_class);
  number("weight", quota.weight, 1e-6, 1e6);
  count("max_concurrent_slots", quota.max_concurrent_slots, 1);
  count("max_kv_pages", quota.max_kv_pages, 1);
  count("reserved_kv_pages", quota.reserved_kv_pages, 0);
  count("max_context_tokens", quota.max_context_tokens, 1);
  number("decode_tokens_per_s", quota.decode_tokens_per_s, 1e-3, 1e12);
  number("prefill_tokens_per_s", quota.prefill_tokens_per_s, 1e-3, 1e12);
  take(fields.get_string("isolation_group", kMaxNameBytes), quota.isolation_group);
  number("requests_per_minute", requests_per_minute, 0, 1e9);
  number("tokens_per_minute", tokens_per_minute, 0, 1e15);
  count("max_open_requests", max_open_requests, 1);
  take(fields.get_bool("proxy"), is_proxy);
  if (!result) return result;
  return fields.expect_no_others();
}

void MinuteBucket::set_rate(double per_minute) {
  if (per_minute == rate_) return;
  rate_ = level_ = per_minute;
  last_ = Clock::now();
}

double MinuteBucket::level(Clock::time_point now) {
  const double passed = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  return level_ = std::min(rate_, level_ + passed * rate_ / 60);
}

double MinuteBucket::wait_s(double amount, Clock::time_point now) {
  if (rate_ == 0) return 0;
  return std::max(0.0, (std::min(amount, rate_) - level(now)) * 60 / rate_);
}

void MinuteBucket::take(double amount, Clock::time_point now) {
  if (rate_ == 0) return;
  level_ = level(now) - amount;
}

TenantEntry::TenantEntry(std::string name, Tenant tenant, TenantSettings settings, bool is_configured)
    : name(std::move(name)), is_configured(is_configured), tenant(std::move(tenant)), settings_(std::move(settings)) {
  requests_.set_rate(settings_.requests_per_minute);
  tokens_.set_rate(settings_.tokens_per_minute);
}

TenantSettings TenantEntry::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

ApiResult<void> TenantEntry::set_settings(const TenantSettings& settings) {
  auto handle = tenant;
  if (const auto status = handle.set_quota(settings.quota); !status)
    return std::unexpected(quota_error(status.error()));
  const std::lock_guard lock(mutex_);
  settings_ = settings;
  requests_.set_rate(settings.requests_per_minute);
  tokens_.set_rate(settings.tokens_per_minute);
  return {};
}

ApiResult<void> TenantEntry::open_request(std::uint64_t n_choices, Headers& rate_headers) {
  const auto now = MinuteBucket::Clock::now();
  const std::lock_guard lock(mutex_);
  const double wait = std::max(requests_.wait_s(1, now), tokens_.wait_s(1, now));
  const bool is_full = n_choices_ + n_choices > settings_.max_open_requests;
  if (wait == 0 && !is_full) {
    ++n_open_;
    n_choices_ += n_choices;
    requests_.take(1, now);
  }
  put_rates(rate_headers, now);
  if (wait == 0 && !is_full) return {};
  ApiError error;
  error.status = 429;
  error.code = "rate_limit_exceeded";
  error.retry_after_s = std::max(wait, 1.0);
  error.message =
      is_full ? fmt::format("[quota] tenant \"{}\" has {} choices open and {} came, {} allowed (max_open_requests)",
                            name, n_choices_, n_choices, settings_.max_open_requests)
              : fmt::format(
                    "[quota] tenant \"{}\" is over its rate ({:.0f} requests, {:.0f} tokens a minute); "
                    "try again in {:.1f} s",
                    name, settings_.requests_per_minute, settings_.tokens_per_minute, wait);
  return std::unexpected(std::move(error));
}

void TenantEntry::put_rates(Headers& headers, MinuteBucket::Clock::time_point now) {
  for (const auto& [what, bucket] : {std::pair("requests", &requests_), std::pair("tokens", &tokens_)}) {
    if (bucket->rate() == 0) continue;
    const double level = std::max(0.0, std::floor(bucket->level(now)));
    headers.emplace_back(fmt::format("x-ratelimit-limit-{}", what), fmt::format("{:.0f}", bucket->rate()));
    headers.emplace_back(fmt::format("x-ratelimit-remaining-{}", what), fmt::format("{:.0f}", level));
    headers.emplace_back(fmt::format("x-ratelimit-reset-{}", what),
                         fmt::format("{:.3f}s", bucket->wait_s(bucket->rate(), now)));
  }
}

void TenantEntry::tell_rates(Headers& headers) {
  const std::lock_guard lock(mutex_);
  put_rates(headers, MinuteBucket::Clock::now());
}

void TenantEntry::close_request(std::uint64_t n_choices, std::uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  --n_open_;
  n_choices_ -= n_choices;
  tokens_.take(static_cast<double>(tokens), MinuteBucket::Clock::now());
}

std::uint32_t TenantEntry::n_open() const {
  const std::lock_guard lock(mutex_);
  return n_open_;
}

Result<std::shared_ptr<TenantEntry>> TenantRegistry::make(const std::string& name, const TenantSettings& settings,
                                                          bool is_configured) {
  ZRT_TRY(auto tenant, engine_.tenant(name, settings.quota));
  return std::make_shared<TenantEntry>(name, std::move(tenant), settings, is_configured);
}

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

// All of them, or none. REQUIRES: mutex_.
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
  // The keys first: what is refused for them changes nothing.
  ZRT_TRY(auto keys, keys_of(tenants, admin_key_hashes));
  const auto is_in_file = [&](const std::string& name) {
    return std::ranges::find(tenants, name, &Configured::name) != tenants.end();
  };
  const auto is_kept = [&](const Key& key) { return !is_in_file(key.tenant); };  // of those made at run time
  if (keys.empty() && std::ranges::none_of(stored_keys_, is_kept) &&
      !(configured_keys_.empty() && stored_keys_.empty()))
    return fail(StatusCode::kInvalidArgument,
                "[config] no key is left, which would make everyone an admin; to open the server, start it anew");
  ZRT_CHECK_OK(apply(tenants));
  configured_keys_ = std::move(keys);
  // The file has the last word on who is in it; who is there no more can be changed and removed like others.
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

bool TenantRegistry::is_open_to_all() const {
  const std::lock_guard lock(mutex_);
  return configured_keys_.empty() && stored_keys_.empty();
}

ApiResult<Caller> TenantRegistry::authenticate(const HttpRequest& request) {
  std::shared_ptr<TenantEntry> entry;
  {
    const std::lock_guard lock(mutex_);
    if (configured_keys_.empty() && stored_keys_.empty()) return Caller{tenants_.at("default"), true};
    ZRT_TRY(const auto given, key_of(request));
    ApiError refused;
    refused.status = 401;
    refused.code = "invalid_api_key";
    refused.message = given.empty() ? "[keys] no API key is given; send \"Authorization: Bearer KEY\""
                                    : "[keys] this API key is not known here";
    if (given.empty()) return std::unexpected(std::move(refused));
    const auto hash = sha256_hex(given);
    const Key* found = nullptr;  // all are compared, in the same time for any key
    for (const auto* keys : {&configured_keys_, &stored_keys_})
      for (const Key& key : *keys)
        if (key.hash.size() == hash.size() && CRYPTO_memcmp(key.hash.data(), hash.data(), hash.size()) == 0)
          found = &key;
    if (found == nullptr) return std::unexpected(std::move(refused));
    if (found->tenant.empty()) return Caller{nullptr, true};
    entry = tenants_.at(found->tenant);  // keys go with their tenants
  }
  const auto id = request.header("x-gateway-inference-fairness-id");
  if (id.empty() || !entry->settings().is_proxy) return Caller{std::move(entry), false};
  auto tenant = on_behalf_of(entry, id);
  if (!tenant) return std::unexpected(tenant.error());
  return Caller{std::move(*tenant), false};
}

// A known tenant of that name, else one of its own with the proxy's limits.
ApiResult<std::shared_ptr<TenantEntry>> TenantRegistry::on_behalf_of(const std::shared_ptr<TenantEntry>& proxy,
                                                                     std::string_view id) {
  if (!is_good_tenant_name(id))
    return std::unexpected(conflict(fmt::format("[keys] x-gateway-inference-fairness-id: {}", kGoodTenantName), 400));
  if (auto known = find(std::string(id))) return known;
  const std::string name = proxy->name + "/" + std::string(id);
  const std::lock_guard lock(mutex_);
  if (const auto it = tenants_.find(name); it != tenants_.end()) return it->second;
  const auto n = std::ranges::count_if(tenants_, [&](const auto& t) { return t.first.starts_with(proxy->name + "/"); });
  if (static_cast<std::size_t>(n) >= kMaxBehalf) {
    auto error = conflict(
        fmt::format("[keys] {} callers of proxy \"{}\" are known, {} allowed", n, proxy->name, kMaxBehalf), 429);
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

// REQUIRES: mutex_.
ApiResult<void> TenantRegistry::store(const TenantEntry& entry) {
  StoredTenant stored{entry.name, entry.settings().to_json().dump(), {}};
  for (const Key& key : stored_keys_)
    if (key.tenant == entry.name) stored.keys.push_back({key.hash, key.made_s});
  if (const auto status = store_.put_tenant(stored); !status) return std::unexpected(to_api_error(status.error()));
  return {};
}

ApiResult<TenantRegistry::Created> TenantRegistry::create(const std::string& name, const Json& json) {
  if (!is_good_tenant_name(name)) {
    auto error = conflict(fmt::format("[request] id: {}", kGoodTenantName), 400);
    error.param = "id";
    return std::unexpected(std::move(error));
  }
  TenantSettings settings;
  if (auto changed = settings.change(json); !changed) return std::unexpected(changed.error());
  const auto key = make_api_key();
  if (!key) return std::unexpected(to_api_error(key.error()));
  const std::lock_guard change(changing_);
  const std::lock_guard lock(mutex_);
  if (tenants_.contains(name)) return std::unexpected(conflict(fmt::format("[tenants] \"{}\" is there already", name)));
  // With the first key, callers without one are shut out: there must be an admin who can go on.
  if (std::ranges::none_of(configured_keys_, [](const Key& k) { return k.tenant.empty(); }))
    return std::unexpected(
        conflict("[tenants] tenants need an admin key: start the server with --admin-key or admin_keys"));
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
  const std::lock_guard change(changing_);  // without mutex_: a quota waits for the engine's step
  const auto entry = find(name);
  if (!entry) return std::unexpected(conflict(fmt::format("[tenants] there is no \"{}\"", name), 404));
  auto settings = entry->settings();
  if (auto changed = settings.change(json); !changed) return std::unexpected(changed.error());
  if (auto set = entry->set_settings(settings); !set) return std::unexpected(set.error());
  if (entry->is_configured) return entry;  // until the next reload of the file
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
  if (it == tenants_.end()) return std::unexpected(conflict(fmt::format("[tenants] there is no \"{}\"", name), 404));
  if (it->second->is_configured)
    return std::unexpected(conflict(fmt::format("[tenants] the keys of \"{}\" are in the configuration file", name)));
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
  if (it == tenants_.end()) return std::unexpected(conflict(fmt::format("[tenants] there is no \"{}\"", name), 404));
  const auto is_it = [&](const Key& key) { return key.tenant == name && key.hash.starts_with(hash_prefix); };
  if (std::ranges::any_of(configured_keys_, is_it))
    return std::unexpected(conflict(fmt::format(
        "[keys] this key of \"{}\" is in the configuration file: take it out there, and send SIGHUP", name)));
  const auto n = std::ranges::count_if(stored_keys_, is_it);
  if (n == 0 || hash_prefix.empty())
    return std::unexpected(conflict(fmt::format("[keys] \"{}\" has no key whose hash begins so", name), 404));
  if (n > 1) return std::unexpected(conflict(fmt::format("[keys] the hashes of {} keys of \"{}\" begin so", n, name)));
  if (configured_keys_.empty() && stored_keys_.size() == 1)
    return std::unexpected(conflict("[keys] this is the last key: without it everyone would be an admin"));
  const auto before = stored_keys_;
  const auto hash = std::ranges::find_if(stored_keys_, is_it)->hash;
  std::erase_if(stored_keys_, is_it);
  if (auto stored = store(*it->second); !stored) {
    stored_keys_ = before;
    return std::unexpected(stored.error());
  }
  return hash;
}

// In the engine; its requests go on.
void TenantRegistry::forget(const std::string& name) {
  if (const auto removed = engine_.remove_tenant(name); !removed) log().error("{}", removed.error().message);
}

ApiResult<void> TenantRegistry::remove(const std::string& name) {
  const std::lock_guard change(changing_);
  std::unique_lock lock(mutex_);
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return std::unexpected(conflict(fmt::format("[tenants] there is no \"{}\"", name), 404));
  if (it->second->is_configured)
    return std::unexpected(conflict(fmt::format("[tenants] \"{}\" is in the configuration file", name)));
  if (const auto status = store_.remove_tenant(name); !status) return std::unexpected(to_api_error(status.error()));
  std::erase_if(stored_keys_, [&](const Key& key) { return key.tenant == name; });
  tenants_.erase(it);
  lock.unlock();  // what follows waits for the engine's step
  forget(name);
  return {};
}

}  // namespace zinc_rt::server
