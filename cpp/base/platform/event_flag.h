// EventFlag is a flag with a file descriptor that is readable while the flag is set. Callers that wait with poll() or
// an event loop use it.
// Thread rule: any thread.
#pragma once

namespace zinc_rt {

class EventFlag {
 public:
  EventFlag() = default;
  ~EventFlag();
  EventFlag(const EventFlag&) = delete;
  EventFlag& operator=(const EventFlag&) = delete;

  // Creates the descriptor. Returns false if the system has no free descriptor.
  bool open();
  int fd() const { return fd_; }  // -1 if not open; then raise() and lower() do nothing
  void raise();
  void lower();

 private:
  int fd_ = -1;
};

}  // namespace zinc_rt
