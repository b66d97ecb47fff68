// Transport serves HTTP/1.1 over TCP, plain or with TLS. A handler sees the head of each request and decides whether
// its body is read. The complete request then goes to the function that the handler named, which answers through a
// Connection. This library knows only sockets and HTTP: no models, tenants or JSON.
// Thread rule: listen() starts I/O threads, which call the handler; the handler must not block. All members from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

struct TransportOptions {
  std::string host = "127.0.0.1";  // an address or a name; "::" and "0.0.0.0" stand for all addresses of this machine
  std::uint16_t port = 8080;       // 0: any free port
  // If not empty: listening on an address that other machines can reach is an error, and this text is the reason.
  std::string why_loopback_only;
  std::string tls_cert, tls_key;  // PEM files; both or neither
  std::size_t max_head_bytes = 32u << 10;
  std::size_t max_body_bytes = 16u << 20;
  std::size_t max_unsent_bytes = 256u << 10;  // per answer; while more bytes wait, write() to a stream returns false
  std::uint32_t max_connections = 16384;
  std::uint32_t max_connections_per_address = 8192;
  // Timeouts in seconds: for the head, from its first byte or the start of the connection; for the body; between two
  // requests; for the client to take what was sent; between two heartbeats of a stream.
  double head_timeout_s = 10, body_timeout_s = 60, idle_timeout_s = 75, write_timeout_s = 30, heartbeat_s = 15;
  double body_stall_timeout_s = 10;  // seconds between two pieces of a body
  // `bodies` limits the bytes of bodies that are being read or wait for a handler. Beyond these limits requests are
  // refused.
  ByteBudget::Limits bodies{256u << 20, 128u << 20, 112u << 20};
  // The limit on bytes from clients that are not part of a request yet, not counting kFreeInput per connection. A
  // connection beyond it is closed.
  static constexpr std::size_t kFreeInput = 4096;
  ByteBudget::Limits inputs{128u << 20, 64u << 20, 0};
  // Creates the answer to a request that reaches no handler, or whose handler sends no answer.
  MakeRefusal refusal = plain_refusal;
  // Called on an I/O thread for each answered request, including those that reached no handler. It must not block.
  std::function<void(const AnsweredRequest&)> on_answered;
};

// A handler's decision about a request, made from the head alone: answer at once without reading the body, or call
// `handle` when the body has arrived.
struct HeadVerdict {
  std::optional<HttpResponse> answer;
  // Called once with the complete request, unless `answer` is set.
  std::function<void(HttpRequest, std::shared_ptr<Connection>)> handle;
  std::string owner;  // the owner to whom TransportOptions::bodies counts the body's bytes; empty: no owner
  Headers notes;      // become AnsweredRequest::notes
  std::string owner_words = "this request's owner";  // how error messages for the client name the owner
  // Limit on the bytes of this request's body; 0: TransportOptions::max_body_bytes. With a higher limit, the time limit
  // for the body grows in proportion.
  std::size_t max_body_bytes = 0;
};

// Counters for the metrics.
struct TransportCounts {
  std::uint64_t accepted = 0, refused = 0, requests = 0, bad_requests = 0, timed_out = 0;
  std::uint32_t open = 0;
  std::uint64_t held_bytes = 0;  // bytes that bodies and received inputs hold in memory
};

class Transport {
 public:
  // Called when a request's head has arrived, before any byte of its body is read.
  using Handler = std::function<HeadVerdict(const HttpRequest&)>;

  // Starts to listen. Errors: kInvalidArgument for a host, certificate or key that cannot be used; kUnavailable if the
  // port is taken.
  static Result<std::unique_ptr<Transport>> listen(const TransportOptions& options, Handler handler);
  virtual ~Transport() = default;  // does the same as close()

  virtual std::uint16_t port() const = 0;
  virtual TransportCounts counts() const = 0;
  // Accepts no more connections, and no more requests on open connections, and waits until all answers have been sent.
  // Returns false if some answers were not sent in time.
  virtual bool drain(double timeout_s) = 0;
  virtual void close() = 0;
};

}  // namespace zinc_rt::server
