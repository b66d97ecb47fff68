// Creates and hashes API keys, and finds the key in a request.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace zinc_rt::server {

std::string sha256_hex(std::string_view text);
// Creates a key: "zrt-" and 43 random characters. Errors: kUnavailable if the system returns no random bytes.
Result<std::string> make_api_key();
// Returns the key in the header Authorization (Bearer), api-key or x-api-key; empty if the request has no key. Errors:
// 400 if the headers have two different keys, because a proxy in front of this server may have checked another key than
// this server would.
ApiResult<std::string_view> api_key_in(const HttpRequest& request);

}  // namespace zinc_rt::server
