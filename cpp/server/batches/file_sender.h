// Sends a file as an answer, piece by piece, so that a slow client holds neither memory nor a thread.
// Thread rule: send_file() from any thread.
#pragma once

#include <string>

#include "server/core.h"

namespace zinc_rt::server {

// Answers with the file's present bytes. The answer is cut off if the server closes first. Returns false, without an
// answer, if the file cannot be opened.
bool send_file(ServerCore& core, Exchange& exchange, const std::string& path, HttpResponse head);

}  // namespace zinc_rt::server
