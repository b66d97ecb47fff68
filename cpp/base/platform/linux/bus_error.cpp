#include "base/platform/posix/bus_error.h"

namespace zinc_rt {

bool may_be_missing_page(const siginfo_t& info) {
  return info.si_code == BUS_ADRERR;
}

}  // namespace zinc_rt
