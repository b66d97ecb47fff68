#include "base/platform/event_flag.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace zinc_rt {

EventFlag::~EventFlag() {
  if (fd_ >= 0) ::close(fd_);
}

bool EventFlag::open() {
  if (fd_ < 0) fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return fd_ >= 0;
}

void EventFlag::raise() {
  if (fd_ >= 0) ::eventfd_write(fd_, 1);
}

void EventFlag::lower() {
  eventfd_t value = 0;
  if (fd_ >= 0) ::eventfd_read(fd_, &value);
}

}  // namespace zinc_rt
