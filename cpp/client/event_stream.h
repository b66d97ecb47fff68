// EventStream reads server-sent events (SSE) from pieces that may end anywhere, and passes on the data of each event.
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace zinc_rt::client {

class EventStream {
 public:
  // Takes the next piece of the stream. Calls on_data(std::string_view) with the data of each event that ends in this
  // piece. If on_data returns false, stops and returns false. Comments and fields other than data are skipped.
  template <class OnData>
  bool push(std::string_view piece, OnData&& on_data) {
    for (const char c : piece) {
      const bool is_second_half = c == '\n' && had_return_;
      had_return_ = c == '\r';
      if (is_second_half) continue;
      if (c != '\n' && c != '\r')
        line_ += c;
      else if (end_line() && !on_data(std::string_view(data_)))
        return false;
      else if (is_event_over_)
        data_.clear();
    }
    return true;
  }

 private:
  // Handles a line that has ended. Returns true if it ends an event that has data.
  bool end_line();

  std::string line_, data_;
  bool had_return_ = false, has_data_ = false, is_event_over_ = false;
};

}  // namespace zinc_rt::client
