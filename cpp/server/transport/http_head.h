// Checks the head of an HTTP/1.x message byte by byte before a parser sees it. Refuses whatever two programs could read
// in two ways (RFC 9112, sections 2.2, 3, 5 and 6).
// Thread rule: pure functions.
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

// `bytes`: all bytes of this message so far. The result is kBad as soon as no continuation could make them valid.
HeadScan scan_head(std::string_view bytes, std::size_t max_bytes);

// A request target: the path with its query, plus the host if the target is a full URL (RFC 9112, section 3.2.2).
struct Target {
  std::string host, path;  // path empty: the target is neither a path nor an address
};
Target split_target(std::string_view target);

// The path in a head's request line, even if the rest of the head is broken or missing. Empty: no path yet.
std::string path_of_head(std::string_view bytes);

// The text without the spaces and tabs around it, which do not belong to a header's value.
std::string_view trimmed(std::string_view text);

// Decodes %XX in a path or query. Returns false for a broken escape, a zero byte, or a result that is not UTF-8.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace zinc_rt::server
