// A Sink receives the events of a generation.
// Thread rule: the engine's drainer thread calls push and end, never both at once for one generation. The n generations
// of a request share a sink; push and end are called for one of them at a time. Neither call may block, because all
// streams of the engine would wait.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "zinc_rt/request.h"

namespace zinc_rt {

enum class SinkResult : std::uint8_t {
  kTaken,
  kFull,    // the sink has no room; the request pauses, and push is called again later with the same event
  kFailed,  // the reader is gone, so this and later events are lost; the request ends as sink_failed
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual SinkResult push(const StreamEvent& event) = 0;
  virtual void end(std::uint32_t index) = 0;  // called once no event follows for completion `index`
  // Waits until the reader has handled all events that were pushed, or has failed. Clients call it on any thread.
  // Returns false if neither happened within timeout_ms; a negative timeout waits for ever. A sink from which the
  // reader pulls events returns true at once.
  virtual bool wait_delivered([[maybe_unused]] double timeout_ms) { return true; }
};

// Returns a sink that calls `callback` for each event on its own thread and buffers up to `capacity` events. A callback
// that throws ends the request. The callback may be called after the request, or even the engine, has ended. So what
// the callback uses must live until its last call.
std::shared_ptr<Sink> make_callback_sink(std::function<void(const StreamEvent&)> callback, std::size_t capacity = 256);

}  // namespace zinc_rt
