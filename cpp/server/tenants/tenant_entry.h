// The server's state of one tenant: its settings and its open requests.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "server/tenants/minute_bucket.h"
#include "server/tenants/tenant_settings.h"

namespace zinc_rt::server {

// The answer for a quota that the engine refused.
ApiError quota_error(const Error& error);

class TenantEntry {
 public:
  TenantEntry(std::string name, Tenant tenant, TenantSettings settings, bool is_configured);
  const std::string name;
  std::atomic<bool> is_configured;  // whether it is in the configuration file; else it was made at run time
  const Tenant tenant;

  TenantSettings settings() const;
  ApiResult<void> set_settings(const TenantSettings& settings);
  // Begins a request. Until close_request it counts as open, and so do its choices: prompts times n, as the engine's
  // queue counts them. Errors: 429 with the time to wait.
  ApiResult<void> open_request(std::uint64_t n_choices, Headers& rate_headers);
  // Adds headers with what is left of the tenant's rates, if it has rates.
  void tell_rates(Headers& headers);
  // Counts a model load for one of its requests. The limit is kLoadsPerMinute or the tenant's requests per minute,
  // whichever is less. Errors: 429 with the time to wait.
  ApiResult<void> take_load();
  static constexpr double kLoadsPerMinute = 10;
  void close_request(std::uint64_t n_choices, std::uint64_t tokens);
  std::uint32_t n_open() const;

 private:
  mutable std::mutex mutex_;
  TenantSettings settings_;
  void put_rates(Headers& headers, MinuteBucket::Clock::time_point now);  // REQUIRES: mutex_
  void set_rates();                                                       // REQUIRES: mutex_, or nobody else
  MinuteBucket requests_, tokens_, loads_;
  std::uint32_t n_open_ = 0;
  std::uint64_t n_choices_ = 0;
};

}  // namespace zinc_rt::server
