// HttpClient is an HTTP/1.1 client for many simultaneous calls to one server. The load generator and downloads use it.
// A callback receives the answer in pieces.
// Thread rule: an HttpClient and its calls may be used from any thread; callbacks run on the client's own thread, one
// at a time. They must not block for long or destroy the client.
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

// Url holds the parts of a URL such as http://host:port/path or https://... An IPv6 address stands in brackets in the
// URL.
struct Url {
  bool is_tls = false;
  std::string host;  // host name or address; an IPv6 address has no brackets here
  std::uint16_t port = 80;
  std::string path;  // path of the URL: empty, or begins with '/' and does not end with it

  std::string authority() const;  // host and port as a Host header has them
};
// Parses a URL. URLs with a user name, query or fragment are refused. Errors: kInvalidArgument, and the message names
// the problem.
Result<Url> parse_url(std::string_view text);

using Headers = std::vector<std::pair<std::string, std::string>>;  // names of received headers are in lower case

struct HttpCall {
  std::string method = "GET";
  std::string target;  // path and query, as sent to the server
  Headers headers;     // sent in addition to Host and Content-Length
  std::string body;
  double timeout_s = 60;  // most seconds from start() to the end of the answer
};

struct HttpEnd {
  enum Kind : std::uint8_t {
    kWhole,
    kCancelled,   // cancel() was called, or a callback returned false
    kNoConnect,   // the server could not be reached
    kTimeout,     // the call did not end within timeout_s
    kIncomplete,  // the connection ended within the answer, or the answer is not HTTP
  } kind = kWhole;
  std::string error;  // describes what went wrong; empty with kWhole and kCancelled
};

struct HttpEvents {
  std::function<void(int status, const Headers& headers)> on_head;
  std::function<bool(std::string_view piece)> on_body;  // returns false to close the connection
  std::function<void(const HttpEnd& end)> on_end;       // called exactly once, after the other callbacks
};

// HttpHandle is a call that has been started. Its cancel() ends the call.
class HttpHandle {
 public:
  virtual ~HttpHandle() = default;
  // Closes the connection. on_end is then called, unless it was called already.
  virtual void cancel() = 0;
};

class HttpClient {
 public:
  // Creates a client for the server of `url`. Resolves the host's name. With a proxy, resolves the proxy's name
  // instead, and the proxy connects to the host. Connections are opened when calls start. A connection carries one call
  // at a time and is reused for later calls. A call is never sent twice. Certificates are verified with the system's
  // authorities (or those in SSL_CERT_FILE). Errors: kUnavailable.
  static Result<std::unique_ptr<HttpClient>> open(const Url& url, const std::optional<Url>& proxy = {});
  // Cancels all calls and waits until on_end of each has returned.
  virtual ~HttpClient() = default;

  virtual std::shared_ptr<HttpHandle> start(HttpCall call, HttpEvents events) = 0;
};

struct HttpAnswer {
  int status = 0;
  Headers headers;
  std::string body;
};
// Returns the standard phrase for an HTTP status, such as "Bad Gateway"; empty for an unknown status.
std::string_view words_of_status(int status);

// Makes the call and waits for the whole answer. Errors: kUnavailable if the answer did not arrive whole (an HttpEnd other
// than kWhole). An answer with an HTTP error status is no error here.
Result<HttpAnswer> fetch(HttpClient& client, HttpCall call);

}  // namespace zinc_rt::client
