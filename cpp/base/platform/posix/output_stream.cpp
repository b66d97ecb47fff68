#include "base/platform/output_stream.h"

#include <pthread.h>

#include <climits>

#include "base/platform/posix/pipe_signal.h"

namespace zinc_rt {
namespace {

sigset_t pipe_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

PipeSignalBlock::PipeSignalBlock() {
  sigset_t pending, before;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t pipe = pipe_signal();
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  unblocks_ = sigismember(&before, SIGPIPE) == 0;
}

PipeSignalBlock::~PipeSignalBlock() {
  const sigset_t pipe = pipe_signal();
  if (!was_pending_) take_pending(pipe);
  if (unblocks_) pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

std::size_t pipe_bytes() {
  return PIPE_BUF;
}

}  // namespace zinc_rt
