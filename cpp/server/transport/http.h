// The handlers' view of HTTP: a request, and the connection for its answer.
// Thread rule: HttpRequest and HttpResponse are plain values; a Connection may be used from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/transport/byte_budget.h"

namespace zinc_rt::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;     // as sent: GET, POST, ...
  std::string path;       // percent-decoded, without the query
  std::string query;      // what follows the '?', as sent
  Headers headers;        // names in lower case, in the order of the message
  std::string body;       // whole, transfer coding removed
  std::string address;    // of the peer, without its port
  ByteBudget::Hold held;  // counts the body's bytes until the request has been handled

  // The first header of that name (in lower case); empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers;           // besides Content-Type, Content-Length, Connection and Date
  std::string content_type;  // empty: there is no such header
  std::string body;
};

// The facts about a request whose answer has ended, for a log.
struct AnsweredRequest {
  std::string address;
  std::string method, path;  // empty where the head could not be read
  int status = 0;            // 0: the client had left before there was an answer
  std::uint64_t bytes = 0;   // that were sent, head and all
  double time_ms = 0;        // from the first byte of the request that was looked at to the last of the answer
  bool is_whole = false;     // false: the client left before the end, or the answer was broken off
  Headers notes;             // Connection::note, HeadVerdict::notes
};

// Makes the answer to a refused request from the status, the path as far as known, and what is wrong.
using MakeRefusal = std::function<HttpResponse(int status, const std::string& path, const std::string& why)>;
HttpResponse plain_refusal(int status, const std::string& path,
                           const std::string& why);  // as plain text; 429 and 503 with Retry-After

// The answer to one request. It is made once: by respond(), or by start_stream(), any number of write(), and finish().
// If all owners drop it unanswered the client gets a 500. Calls after the client has left have no effect.
class Connection {
 public:
  virtual ~Connection() = default;
  // Adds a header to the answer, even if that becomes an error. REQUIRES: the answer has not begun.
  virtual void add_header(std::string name, std::string value) = 0;
  // Passes a named value to TransportOptions::on_answered. A later value of the same name replaces it. REQUIRES: the
  // answer has not ended.
  virtual void note(std::string name, std::string value) = 0;
  virtual void respond(HttpResponse response) = 0;

  // Sends status and headers; the body follows in pieces. An event stream gets a heartbeat comment if nothing was
  // written for a while.
  virtual void start_stream(HttpResponse head) = 0;
  // Returns false, and takes nothing, if the stream has not started or too much waits to be sent; try again later.
  // Never blocks.
  virtual bool write(std::string_view piece) = 0;
  // Accepts `last` however much waits to be sent.
  virtual void finish(std::string_view last) = 0;
  // Ends the stream without its closing piece, so the client sees that it is incomplete.
  virtual void abort() = 0;

  // Calls `left` once, on an I/O thread, if the client leaves before the answer is complete; at once if it has left. It
  // must not block. A later `left` replaces it.
  virtual void on_gone(std::function<void()> left) = 0;
};

const char* reason_phrase(int status);

}  // namespace zinc_rt::server
