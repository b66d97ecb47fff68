// EncodeWatch checks the limits of one call of encode while it runs.
// Thread rule: belongs to one call.
#pragma once

#include "tokenizer/encode_limits.h"

namespace zinc_rt {

class EncodeWatch {
 public:
  // The limits must outlive the object.
  explicit EncodeWatch(const EncodeLimits& limits) : limits_(limits) {}

  // Returns whether to end the call. Encoders call it after each further `bytes` of text, with the number of tokens so
  // far. Once it has returned true, it always does.
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
  // Number of tokens when the limit was exceeded; 0: the limit was not exceeded.
  std::size_t n_over() const { return n_over_; }

 private:
  static constexpr std::size_t kBytesBetweenLooks = 16 * 1024;
  const EncodeLimits& limits_;
  std::size_t since_look_ = kBytesBetweenLooks;  // initial value: the first call checks the stop token
  std::size_t n_over_ = 0;
  bool is_cancelled_ = false;
};

}  // namespace zinc_rt
