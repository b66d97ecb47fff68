// Sessions holds the open connections and the state that they share.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "server/http/byte_budget.h"
#include "server/transport/asio_types.h"
#include "server/transport/transport.h"

namespace zinc_rt::server {

// Session is one connection. A session holds a reference to itself until it has ended.
class Session {
 public:
  virtual ~Session() = default;
  virtual void start() = 0;
  virtual void sweep(Clock::time_point now) = 0;  // enforces time limits; sends heartbeats
  virtual void stop() = 0;                        // closes the socket at once
  virtual void quit() = 0;                        // closes the socket after the request that is being answered
};

// Sessions is the state that all sessions share. It outlives them.
struct Sessions {
  Sessions(const TransportOptions& options, Transport::Handler handler);

  const TransportOptions options;
  const Transport::Handler handler;
  const std::shared_ptr<ByteBudget> bodies, inputs;
  std::atomic<std::uint64_t> accepted{0}, refused{0}, requests{0}, bad_requests{0}, timed_out{0};
  std::atomic<bool> is_draining{false};

  std::mutex mutex;
  std::condition_variable left;  // notified when a session has ended
  std::unordered_set<std::shared_ptr<Session>> open;
  std::map<std::string, std::uint32_t> by_address;  // number of sessions per IP address

  // Registers a session. Returns false if the limit of sessions per address or in total is reached.
  bool enter(const std::shared_ptr<Session>& session, const std::string& address);
  void leave(const std::shared_ptr<Session>& session, const std::string& address);
};

// Makes a session on an accepted socket, with TLS if `tls` is not null. The session shares ownership of the io_context,
// because answers may outlive the transport and post to it.
std::shared_ptr<Session> make_session(std::shared_ptr<Sessions> shared, std::shared_ptr<asio::io_context> io,
                                      const std::string& address, Socket socket, asio::ssl::context* tls);

}  // namespace zinc_rt::server
