// Tells causes of SIGBUS apart.
// Thread rule: may be called in a signal handler.
#pragma once

#include <signal.h>

namespace zinc_rt {

// Returns false if the signal cannot come of a page that a mapped file has lost.
bool may_be_missing_page(const siginfo_t& info);

}  // namespace zinc_rt
