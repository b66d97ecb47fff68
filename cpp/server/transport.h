// HTTP/1.1 over TCP, plain or TLS: the only place that knows of sockets. Whole requests go to a handler, answers come
// back through Connection. Thread rule: listen() starts I/O threads that call the handler, which must not block; all
// members from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

struct TransportOptions {
  std::string host = "127.0.0.1";  // an address or a name; "::" and "0.0.0.0" are all of this machine's
  std::uint16_t port = 8080;       // 0: one that is free
  std::string tls_cert, tls_key;   // PEM files; both or neither
  std::size_t max_head_bytes = 32u << 10;
  std::size_t max_body_bytes = 16u << 20;
  std::size_t max_unsent_bytes = 256u << 10;  // of one answer; a stream takes no more until the client reads
  std::uint32_t max_connections = 16384;
  std::uint32_t max_connections_per_address = 8192;
  // Seconds. For the head, from its first byte (or from the connection on); for the body; between two requests; for the
  // client to take what was sent; between two heartbeats of a stream.
  double head_timeout_s = 10, body_timeout_s = 60, idle_timeout_s = 75, write_timeout_s = 30, heartbeat_s = 15;
};

struct TransportCounts {
  std::uint64_t accepted = 0, refused = 0, requests = 0, bad_requests = 0, timed_out = 0;
  std::uint32_t open = 0;
};

class Transport {
 public:
  using Handler = std::function<void(HttpRequest, std::shared_ptr<Connection>)>;

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
