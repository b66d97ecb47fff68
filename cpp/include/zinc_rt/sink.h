// Where the events of a generation go.
// Thread rule: the engine's drainer thread calls push and end, never two of them at once for one generation; the n
// generations of a request share a sink and take turns. Neither may block: all streams of the engine wait meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "zinc_rt/request.h"

namespace zinc_rt {

enum class SinkResult : std::uint8_t {
  kTaken,
  kFull,    // no room now; the event is offered again and the request is held up meanwhile
  kFailed,  // the reader is gone, with this event and what follows; the request ends as sink_failed
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual SinkResult push(const StreamEvent& event) = 0;
  virtual void end(std::uint32_t index) = 0;  // no event follows for this one of n
  // For clients, on any thread: waits until the reader has had all that was taken, or failed; false: not by then.
  // timeout_ms < 0: for ever. Sinks that a reader takes events from have nothing to wait for.
  virtual bool wait_delivered([[maybe_unused]] double timeout_ms) { return true; }
};

// Calls `callback` for each event on a thread of its own, with room for `capacity` events that it is behind. A callback
// that throws ends the request. Calls may outlast the request, and the engine: what a callback uses must live as long.
std::shared_ptr<Sink> make_callback_sink(std::function<void(const StreamEvent&)> callback, std::size_t capacity = 256);

}  // namespace zinc_rt
