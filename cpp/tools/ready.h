// Tells the program that started a server the server's address: it writes a line to a descriptor that the program names
// (zinc-rt serve --ready-fd).
#pragma once

#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Errors: kInvalidArgument unless the descriptor is open for writing.
Status check_ready_fd(int fd);
// Writes the line and closes the descriptor, so that its reader sees the end of file. Errors: kUnavailable.
Status tell_ready(int fd, const std::string& line);

}  // namespace zinc_rt::tools
