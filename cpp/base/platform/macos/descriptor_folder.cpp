#include "base/platform/posix/descriptor_folder.h"

namespace zinc_rt {

std::string descriptor_folder() {
  return "/dev/fd";
}

}  // namespace zinc_rt
