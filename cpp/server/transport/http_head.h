// The head of an HTTP/1.x message, checked byte by byte before a parser sees it: what two programs could read in two
// ways is refused (RFC 9112, sections 2.2, 3, 5 and 6). Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/transport/http.h"

namespace zinc_rt::server {

struct HeadScan {
  enum State { kMore, kWhole, kBad } state = kMore;
  std::size_t size = 0;   // kWhole: bytes of the head, its empty line included
  int status = 400;       // kBad: what to answer
  std::string complaint;  // kBad: what is wrong, and the limit if one was passed
};

// `bytes`: all that came of this message so far; said to be bad as soon as no continuation could make it good.
HeadScan scan_head(std::string_view bytes, std::size_t max_bytes);

// A request target: a path with its query, behind the host that it is for where it is a whole address (RFC 9112 3.2.2).
struct Target {
  std::string host, path;  // path empty: neither
};
Target split_target(std::string_view target);

// A path or query with %XX decoded; false for a broken escape, a zero byte or a result that is not UTF-8.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace zinc_rt::server
