#include "client/event_stream.h"

namespace zinc_rt::client {

bool EventStream::end_line() {
  is_event_over_ = line_.empty();
  if (is_event_over_) {
    const bool had_data = has_data_;
    has_data_ = false;
    return had_data;
  }
  if (std::string_view value = line_; value.starts_with("data:")) {
    value.remove_prefix(5);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
  return false;
}

}  // namespace zinc_rt::client
