// Names the folder whose files stand for the descriptors of this process.
// Thread rule: any thread.
#pragma once

#include <string>

namespace zinc_rt {

std::string descriptor_folder();  // /proc/42/fd on Linux, /dev/fd on macOS

}  // namespace zinc_rt
