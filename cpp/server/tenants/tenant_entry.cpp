#include "server/tenants/tenant_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zinc_rt::server {

ApiError quota_error(const Error& error) {
  auto out = to_api_error(error);
  if (out.status == 400) out.param = error.field;  // fields of settings have the names of TenantQuota's members
  return out;
}

TenantEntry::TenantEntry(std::string name, Tenant tenant, TenantSettings settings, bool is_configured)
    : name(std::move(name)), is_configured(is_configured), tenant(std::move(tenant)), settings_(std::move(settings)) {
  set_rates();
}

void TenantEntry::set_rates() {
  const double requests = settings_.requests_per_minute;
  requests_.set_rate(requests);
  tokens_.set_rate(settings_.tokens_per_minute);
  loads_.set_rate(requests > 0 ? std::min(requests, kLoadsPerMinute) : kLoadsPerMinute);
}

ApiResult<void> TenantEntry::take_load() {
  const auto now = MinuteBucket::Clock::now();
  const std::lock_guard lock(mutex_);
  const double wait = loads_.wait_s(1, now);
  if (wait == 0) {
    loads_.take(1, now);
    return {};
  }
  auto error = make_error(429,
                          fmt::format("[quota] tenant \"{}\" had more models loaded than it may, {:.0f} a minute; try "
                                      "again in {:.1f} s",
                                      name, loads_.rate(), wait),
                          "model");
  error.code = "rate_limit_exceeded";
  error.retry_after_s = std::max(wait, 1.0);
  return std::unexpected(std::move(error));
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
  set_rates();
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
  auto error = make_error(
      429, is_full
               ? fmt::format("[quota] tenant \"{}\" has {} choices open and {} came, {} allowed (max_open_requests)",
                             name, n_choices_, n_choices, settings_.max_open_requests)
               : fmt::format("[quota] tenant \"{}\" is over its rate ({:.0f} requests, {:.0f} tokens a minute); "
                             "try again in {:.1f} s",
                             name, settings_.requests_per_minute, settings_.tokens_per_minute, wait));
  error.code = "rate_limit_exceeded";
  error.retry_after_s = std::max(wait, 1.0);
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

}  // namespace zinc_rt::server
