#include <unistd.h>

#include "base/platform/posix/descriptor_folder.h"

namespace zinc_rt {

std::string descriptor_folder() {
  return "/proc/" + std::to_string(::getpid()) + "/fd";
}

}  // namespace zinc_rt
