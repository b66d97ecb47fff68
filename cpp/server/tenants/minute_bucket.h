// MinuteBucket limits a rate per minute, such as a tenant's requests.
// Thread rule: one thread at a time.
#pragma once

#include <chrono>

namespace zinc_rt::server {

// A token bucket: its level rises by `per_minute` per minute, up to `per_minute`, and take() lowers it. The level may
// become negative, because some amounts are known only after a request has ended.
class MinuteBucket {
 public:
  using Clock = std::chrono::steady_clock;
  void set_rate(double per_minute);
  // Returns the seconds until the level is at least `amount`; 0 if it is now.
  double wait_s(double amount, Clock::time_point now);
  void take(double amount, Clock::time_point now);
  double rate() const { return rate_; }
  double level(Clock::time_point now);

 private:
  double rate_ = 0, level_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace zinc_rt::server
