// What PipeSignalBlock does in a different way on each system.
// Thread rule: acts on the calling thread.
#pragma once

#include <signal.h>

namespace zinc_rt {

// Removes SIGPIPE, which is blocked and the only signal of `set`, from the pending signals if it is one of them. Does
// not wait.
void take_pending(const sigset_t& set);

}  // namespace zinc_rt
