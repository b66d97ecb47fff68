// Sends a file as an answer, a piece at a time, so that neither memory nor a thread is held by a client that reads slowly.
// Thread rule: send_file() from any thread.
#pragma once

#include <string>

#include "server/core.h"

namespace zinc_rt::server {

// The client's answer is the file's bytes, as they are now; it is broken off where the server closes before its end.
// False: the file cannot be opened, and nothing was answered.
bool send_file(ServerCore& core, Exchange& exchange, const std::string& path, HttpResponse head);

}  // namespace zinc_rt::server
