// Reports a server's address to the program that started it, as a line on a descriptor that the program chose (zinc-rt
// serve --ready-fd).
#pragma once

#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Checks the descriptor. Errors: kInvalidArgument unless it is open for writing.
Status check_ready_fd(int fd);
// Writes the line and closes the descriptor, so that the reader gets the end of file. Errors: kUnavailable.
Status tell_ready(int fd, const std::string& line);

}  // namespace zinc_rt::tools
