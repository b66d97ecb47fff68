#include "base/platform/output_stream.h"

#include <stdio_ext.h>

#include <ctime>

#include "base/platform/posix/pipe_signal.h"

namespace zinc_rt {

void take_pending(const sigset_t& set) {
  constexpr timespec kNow{};
  sigtimedwait(&set, nullptr, &kNow);
}

void discard_buffer(std::FILE* stream) {
  __fpurge(stream);
}

}  // namespace zinc_rt
