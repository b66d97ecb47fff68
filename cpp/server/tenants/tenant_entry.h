// TenantEntry is the server's record of one tenant: its settings, its rate limits and its open requests.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "server/tenants/minute_bucket.h"
#include "server/tenants/tenant_settings.h"

namespace zinc_rt::server {

// Converts the engine's error about a quota to an answer.
ApiError quota_error(const Error& error);

class TenantEntry {
 public:
  TenantEntry(std::string name, Tenant tenant, TenantSettings settings, bool is_configured);
  const std::string name;
  std::atomic<bool> is_configured;  // true: the tenant is in the configuration file; false: it was created at run time
  const Tenant tenant;

  TenantSettings settings() const;
  ApiResult<void> set_settings(const TenantSettings& settings);
  // Begins a request. Until close_request() the request and its choices (prompts times n, as in the engine's queue)
  // count as open. Adds the headers of put_rates(). Errors: 429 with the time to wait.
  ApiResult<void> open_request(std::uint64_t n_choices, Headers& rate_headers);
  // If the tenant has rate limits, adds headers that say how much of each limit is left.
  void tell_rates(Headers& headers);
  // Counts a model load that a request of the tenant causes. The limit is kLoadsPerMinute or the tenant's requests per
  // minute, whichever is less. Errors: 429 with the time to wait.
  ApiResult<void> take_load();
  static constexpr double kLoadsPerMinute = 10;
  void close_request(std::uint64_t n_choices, std::uint64_t tokens);
  std::uint32_t n_open() const;

 private:
  mutable std::mutex mutex_;
  TenantSettings settings_;
  void put_rates(Headers& headers, MinuteBucket::Clock::time_point now);  // REQUIRES: mutex_
  // Sets the rates of requests_, tokens_ and loads_ from the settings. REQUIRES: mutex_, unless no other thread has the
  // object.
  void set_rates();
  MinuteBucket requests_, tokens_, loads_;
  std::uint32_t n_open_ = 0;
  std::uint64_t n_choices_ = 0;
};

}  // namespace zinc_rt::server
