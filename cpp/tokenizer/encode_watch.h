// Checks the limits of one encode call while it runs.
// Thread rule: belongs to one call.
#pragma once

#include "tokenizer/encode_limits.h"

namespace zinc_rt {

class EncodeWatch {
 public:
  // The limits must outlive the watch.
  explicit EncodeWatch(const EncodeLimits& limits) : limits_(limits) {}

  // Called after each further `bytes` of text, with the number of tokens so far. Returns whether to end the call. Once
  // true it stays true.
  bool over(std::size_t bytes, std::size_t n_tokens) {
    since_look_ += bytes;
    if (since_look_ >= kBytesBetweenLooks) {
      since_look_ = 0;
      is_cancelled_ = is_cancelled_ || limits_.cancel.stop_requested();
    }
    if (n_tokens > limits_.max_tokens) n_over_ = n_tokens;
    return is_cancelled_ || n_over_ > 0;
  }
  bool is_cancelled() const { return is_cancelled_; }
  std::size_t n_over() const { return n_over_; }  // the number of tokens when the limit was exceeded; 0: it was not

 private:
  static constexpr std::size_t kBytesBetweenLooks = 16 * 1024;
  const EncodeLimits& limits_;
  std::size_t since_look_ = kBytesBetweenLooks;  // the first call looks
  std::size_t n_over_ = 0;
  bool is_cancelled_ = false;
};

}  // namespace zinc_rt
