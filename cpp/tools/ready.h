// How whoever started a server learns its address: a line on a descriptor that it names (zinc-rt serve --ready-fd).
// Thread rule: one thread.
#pragma once

#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Errors: kInvalidArgument unless the descriptor is open for writing.
Status check_ready_fd(int fd);
// Writes the line and closes the descriptor, so that its reader meets the end of the file. Errors: kUnavailable.
Status tell_ready(int fd, const std::string& line);

}  // namespace zinc_rt::tools
