// Sends a file as an answer, piece by piece, so that a slow client occupies neither memory nor a thread.
// Thread rule: any thread may call send_file().
#pragma once

#include <string>

#include "server/core.h"

namespace zinc_rt::server {

// Answers with the file's bytes. The answer is aborted if the server closes first. Returns false and does not answer if
// the file cannot be opened.
bool send_file(ServerCore& core, Exchange& exchange, const std::string& path, HttpResponse head);

}  // namespace zinc_rt::server
