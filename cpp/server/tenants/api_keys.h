// API keys: how they are made, hashed, and found in a request.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace zinc_rt::server {

std::string sha256_hex(std::string_view text);
// Makes a key: "zrt-" and 43 random characters. Errors: kUnavailable if the system has no randomness.
Result<std::string> make_api_key();
// The key in Authorization (Bearer), api-key or x-api-key; empty: none. Errors: 400 for two different keys, because a
// proxy in between may have checked the other one.
ApiResult<std::string_view> api_key_in(const HttpRequest& request);

}  // namespace zinc_rt::server
