#include "base/platform/output_stream.h"

#include "base/platform/posix/pipe_signal.h"

namespace zinc_rt {

// macOS has no sigtimedwait. sigwait returns at once, because the signal is pending.
void take_pending(const sigset_t& set) {
  sigset_t pending;
  if (sigpending(&pending) != 0 || sigismember(&pending, SIGPIPE) != 1) return;
  int taken = 0;
  sigwait(&set, &taken);
}

void discard_buffer(std::FILE* stream) {
  fpurge(stream);
}

}  // namespace zinc_rt
