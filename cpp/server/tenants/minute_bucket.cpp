#include "server/tenants/minute_bucket.h"

#include <algorithm>

namespace zinc_rt::server {

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

}  // namespace zinc_rt::server
