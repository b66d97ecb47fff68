// Checks the head of an HTTP/1.x message byte by byte before a parser sees it. Refuses every message that two programs
// could interpret differently (request smuggling; RFC 9112, sections 2.2, 3, 5 and 6).
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace zinc_rt::server {

// HeadScan is the result of checking the head of a message.
struct HeadScan {
  enum State { kMore, kWhole, kBad } state = kMore;
  std::size_t size = 0;   // kWhole: bytes of the head, with the empty line that ends it
  int status = 400;       // kBad: the status to answer with
  std::string complaint;  // kBad: what is wrong, with the limit if one was exceeded
};

// Checks the bytes of a message received so far. Returns kBad as soon as no further bytes could make the head valid.
HeadScan scan_head(std::string_view bytes, std::size_t max_bytes);

// Target is a request target, split into the path (with the query) and the host. `host` is set only if the target is a
// full URL (RFC 9112, section 3.2.2).
struct Target {
  std::string host, path;  // path is empty if the target is neither a path nor a URL
};
Target split_target(std::string_view target);

// Returns the path in the request line, even if the rest of the head is malformed or missing. Returns an empty text if
// the path is not complete.
std::string path_of_head(std::string_view bytes);

// Returns the text without leading and trailing spaces and tabs, which are not part of a header's value.
std::string_view trimmed(std::string_view text);

// Decodes %XX in a path or query. Returns false for a broken escape, a zero byte, or a result that is not UTF-8.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace zinc_rt::server
