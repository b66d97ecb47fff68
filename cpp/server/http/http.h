// HTTP as handlers see it: a request, and the connection for its answer.
// Thread rule: HttpRequest and HttpResponse are plain values; a Connection may be used from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/byte_budget.h"

namespace zinc_rt::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;     // as sent: GET, POST, ...
  std::string path;       // percent-decoded, without the query
  std::string query;      // what follows the '?', as sent
  Headers headers;        // names in lower case, in the order of the message
  std::string body;       // the whole body, transfer coding removed
  std::string address;    // the peer's IP address, without a port
  ByteBudget::Hold held;  // counts the body's bytes until the request has been handled

  // Returns the first header of that name (in lower case), or an empty text if the request has no such header.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers;           // in addition to Content-Type, Content-Length, Connection and Date
  std::string content_type;  // empty: the answer has no Content-Type
  std::string body;
};

// AnsweredRequest is what a log needs to know about a request whose answer has ended.
struct AnsweredRequest {
  std::string address;
  std::string method, path;  // empty if the head could not be parsed
  int status = 0;            // 0: the client disconnected before an answer began
  std::uint64_t bytes = 0;   // bytes that were sent, with the head
  double time_ms = 0;     // time from the first byte of the request that was processed to the last byte of the answer
  bool is_whole = false;  // false: the client disconnected before the end, or the answer was aborted
  // The notes that handlers passed to Connection::note() and HeadVerdict::notes, for the access log.
  Headers notes;
};

// A function of this type returns the answer to a refused request. `path` is empty if it is not known; `why` tells what
// is wrong.
using MakeRefusal = std::function<HttpResponse(int status, const std::string& path, const std::string& why)>;
// Answers as plain text; 429 and 503 have the header Retry-After.
HttpResponse plain_refusal(int status, const std::string& path, const std::string& why);

// Sends the answer to one request. A handler calls respond() once, or start_stream(), write() any number of times and
// finish(). If all owners release the Connection without an answer, the client gets status 500. Calls have no effect
// after the client has disconnected.
class Connection {
 public:
  virtual ~Connection() = default;
  // Adds a header to the answer, also if the answer becomes an error. REQUIRES: the answer has not begun.
  virtual void add_header(std::string name, std::string value) = 0;
  // Passes a named value to TransportOptions::on_answered. A later value of the same name replaces it. REQUIRES: the
  // answer has not ended.
  virtual void note(std::string name, std::string value) = 0;
  virtual void respond(HttpResponse response) = 0;

  // Sends status and headers; write() sends the body. If nothing is written to an event stream for heartbeat_s
  // (transport.h), the transport sends a comment as heartbeat.
  virtual void start_stream(HttpResponse head) = 0;
  // Appends bytes to the body. Returns false and appends nothing if the stream has not started or too many bytes wait
  // to be sent; the caller may try again later. Never blocks.
  virtual bool write(std::string_view piece) = 0;
  // Appends `last`, however many bytes wait to be sent, and ends the answer.
  virtual void finish(std::string_view last) = 0;
  // Ends the stream without its closing piece, so the client sees that it is incomplete.
  virtual void abort() = 0;

  // Calls `left` once, on an I/O thread, if the client disconnects before the answer is complete. If it has
  // disconnected already, calls it at once. `left` must not block. A later call of on_gone() replaces it.
  virtual void on_gone(std::function<void()> left) = 0;
};

const char* reason_phrase(int status);

}  // namespace zinc_rt::server
