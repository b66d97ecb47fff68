#include "base/platform/output_stream.h"

#include <pthread.h>

#include <climits>
#include <csignal>

namespace zinc_rt {
namespace {

bool is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

sigset_t pipe_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

PipeSignalBlock::PipeSignalBlock() : was_pending_(is_pending()) {
  sigset_t before;
  const sigset_t pipe = pipe_signal();
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  unblocks_ = sigismember(&before, SIGPIPE) == 0;
}

PipeSignalBlock::~PipeSignalBlock() {
  const sigset_t pipe = pipe_signal();
  int taken = 0;
  if (!was_pending_ && is_pending()) sigwait(&pipe, &taken);  // returns at once; macOS has no sigtimedwait
  if (unblocks_) pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

std::size_t pipe_bytes() {
  return PIPE_BUF;
}

void discard_buffer(std::FILE* stream) {
  fpurge(stream);
}

}  // namespace zinc_rt
