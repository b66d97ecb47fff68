#include "base/platform/event_flag.h"

#include <fcntl.h>
#include <sys/event.h>
#include <unistd.h>

namespace zinc_rt {
namespace {

// The flag is an event of the user's own in a queue of events. The queue's descriptor is readable while the event has
// been triggered and not been taken.
constexpr uintptr_t kIdentity = 1;

bool change(int queue, uint16_t flags, uint32_t filter_flags) {
  struct kevent event{};
  EV_SET(&event, kIdentity, EVFILT_USER, flags, filter_flags, 0, nullptr);
  return ::kevent(queue, &event, 1, nullptr, 0, nullptr) == 0;
}

}  // namespace

EventFlag::~EventFlag() {
  if (fd_ >= 0) ::close(fd_);
}

bool EventFlag::open() {
  if (fd_ >= 0) return true;
  const int queue = ::kqueue();
  if (queue < 0) return false;
  if (::fcntl(queue, F_SETFD, FD_CLOEXEC) != 0 || !change(queue, EV_ADD | EV_CLEAR, 0)) {
    ::close(queue);
    return false;
  }
  fd_ = queue;
  return true;
}

void EventFlag::raise() {
  if (fd_ >= 0) change(fd_, 0, NOTE_TRIGGER);
}

void EventFlag::lower() {
  struct kevent event{};
  constexpr timespec kNow{};
  if (fd_ >= 0) ::kevent(fd_, nullptr, 0, &event, 1, &kNow);  // EV_CLEAR: an event that is taken is lowered
}

}  // namespace zinc_rt
