// HTTP/1.1 over TCP, plain or TLS: the only place that knows of sockets. A handler sees the head of each request and
// says whether the rest is wanted; the whole of it goes where the handler said, and answers come back through
// Connection. Thread rule: listen() starts I/O threads that call the handler, which must not block; all members from
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

struct TransportOptions {
  std::string host = "127.0.0.1";  // an address or a name; "::" and "0.0.0.0" are all of this machine's
  std::uint16_t port = 8080;       // 0: one that is free
  bool loopback_only = false;      // refuse a host that other machines can reach
  std::string tls_cert, tls_key;   // PEM files; both or neither
  std::size_t max_head_bytes = 32u << 10;
  std::size_t max_body_bytes = 16u << 20;
  std::size_t max_unsent_bytes = 256u << 10;  // of one answer; a stream takes no more until the client reads
  std::uint32_t max_connections = 16384;
  std::uint32_t max_connections_per_address = 8192;
  // Seconds. For the head, from its first byte (or from the connection on); for the body; between two requests; for the
  // client to take what was sent; between two heartbeats of a stream.
  double head_timeout_s = 10, body_timeout_s = 60, idle_timeout_s = 75, write_timeout_s = 30, heartbeat_s = 15;
  double body_stall_timeout_s = 10;  // without a byte of a body that has not ended
  // Of bodies that are read or wait for a handler; what is beyond is refused.
  ByteBudget::Limits bodies{256u << 20, 128u << 20, 64u << 20};
  // Of what clients sent and no request was made of yet, past kFreeInput of each; a connection beyond is closed.
  static constexpr std::size_t kFreeInput = 4096;
  ByteBudget::Limits inputs{128u << 20, 64u << 20, 0};
};

// What becomes of a request, by its head: answered at once, its body unread, or handled when it is whole.
struct HeadVerdict {
  std::optional<HttpResponse> answer;
  // Else: called once with the request that was shown, its body in it.
  std::function<void(HttpRequest, std::shared_ptr<Connection>)> handle;
  std::string owner;  // of the bytes of its body, in TransportOptions::bodies
};

struct TransportCounts {
  std::uint64_t accepted = 0, refused = 0, requests = 0, bad_requests = 0, timed_out = 0;
  std::uint32_t open = 0;
  std::uint64_t held_bytes = 0;  // of bodies and inputs
};

class Transport {
 public:
  // The request has no body yet.
  using Handler = std::function<HeadVerdict(const HttpRequest&)>;

  // Errors: kInvalidArgument for a host, certificate or key that cannot be used; kUnavailable for a port that is taken.
  static Result<std::unique_ptr<Transport>> listen(const TransportOptions& options, Handler handler);
  virtual ~Transport() = default;  // as close()

  virtual std::uint16_t port() const = 0;
  virtual TransportCounts counts() const = 0;
  // Takes no more connections and no more requests on those that there are; waits until the answers under way have gone
  // out. False: not all by then.
  virtual bool drain(double timeout_s) = 0;
  virtual void close() = 0;
};

}  // namespace zinc_rt::server
