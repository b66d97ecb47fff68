#include "base/platform/descriptors.h"

#include <cerrno>

namespace zinc_rt {

int descriptor_of(const std::string&) {
  return -1;
}

int duplicate_descriptor(int) {
  errno = ENOTSUP;
  return -1;
}

bool make_owner_only(int) {
  errno = ENOTSUP;
  return false;
}

}  // namespace zinc_rt
