#include "base/platform/posix/bus_error.h"

namespace zinc_rt {

// The code of the signal is not looked at, because macOS does not say which one a missing page has.
bool may_be_missing_page(const siginfo_t&) {
  return true;
}

}  // namespace zinc_rt
