// An HTTP/1.1 client for many simultaneous calls to one server. Answers arrive in pieces.
// Thread rule: an HttpClient and its calls may be used from any thread; events come on the client's own thread, one at
// a time, and must not block for long, nor destroy the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::client {

// http://host:port/path, https://... ; IPv6 addresses in brackets.
struct Url {
  bool is_tls = false;
  std::string host;  // without brackets
  std::uint16_t port = 80;
  std::string path;  // empty, or beginning with '/' and not ending with it

  std::string authority() const;  // as in a Host header
};
// Errors: kInvalidArgument naming the problem. User names, queries and fragments are refused.
Result<Url> parse_url(std::string_view text);

using Headers = std::vector<std::pair<std::string, std::string>>;  // names in lower case where they are received

struct HttpCall {
  std::string method = "GET";
  std::string target;  // path and query
  Headers headers;     // besides Host and Content-Length
  std::string body;
  double timeout_s = 60;  // seconds from start() to the end of the answer
};

struct HttpEnd {
  enum Kind : std::uint8_t {
    kWhole,
    kCancelled,   // by cancel(), or by a callback
    kNoConnect,   // no connection could be made
    kTimeout,     // timeout_s went by
    kIncomplete,  // the connection ended within the answer, or the answer is not HTTP
  } kind = kWhole;
  std::string error;  // what went wrong; empty with kWhole and kCancelled
};

struct HttpEvents {
  std::function<void(int status, const Headers& headers)> on_head;
  std::function<bool(std::string_view piece)> on_body;  // false: hang up
  std::function<void(const HttpEnd& end)> on_end;       // called last, once
};

// A call that is under way.
class HttpHandle {
 public:
  virtual ~HttpHandle() = default;
  // Hangs up. on_end follows, unless it has been called already.
  virtual void cancel() = 0;
};

class HttpClient {
 public:
  // Looks up the host; connections are made when there are calls. They are kept for later calls, one call at a time
  // each; a call is never sent twice. Certificates are checked against the system's (or SSL_CERT_FILE). With an HTTP
  // proxy, the proxy is looked up and asked for the host. Errors: kUnavailable.
  static Result<std::unique_ptr<HttpClient>> open(const Url& url, const std::optional<Url>& proxy = {});
  // Hangs up all calls and waits for their ends.
  virtual ~HttpClient() = default;

  virtual std::shared_ptr<HttpHandle> start(HttpCall call, HttpEvents events) = 0;
};

struct HttpAnswer {
  int status = 0;
  Headers headers;
  std::string body;
};
// The usual words for a status, such as "Bad Gateway"; empty for an unknown status.
std::string_view words_of_status(int status);

// Waits for the whole answer. Errors: kUnavailable for every end but kWhole.
Result<HttpAnswer> fetch(HttpClient& client, HttpCall call);

}  // namespace zinc_rt::client
