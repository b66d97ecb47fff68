#include "server/transport/transport.h"

#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "server/transport/asio_types.h"
#include "server/transport/sessions.h"

namespace zinc_rt::server {
namespace {

constexpr int kIoThreads = 2;
constexpr auto kSweep = std::chrono::milliseconds(500);

class TransportImpl final : public Transport {
 public:
  TransportImpl(const TransportOptions& options, Handler handler)
      : shared_(std::make_shared<Sessions>(options, std::move(handler))),
        acceptor_(asio::make_strand(*io_)),
        sweeper_(acceptor_.get_executor()) {}
  ~TransportImpl() override { close(); }

  Status start() {
    const TransportOptions& o = shared_->options;
    if (o.tls_cert.empty() != o.tls_key.empty())
      return fail(StatusCode::kInvalidArgument,
                  "[http] a TLS certificate and its key are needed, one of them is given");
    error_code ec;
    if (!o.tls_cert.empty()) {
      tls_.emplace(asio::ssl::context::tls_server);
      tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1);
      tls_->use_certificate_chain_file(o.tls_cert, ec);
      if (ec) return fail(StatusCode::kInvalidArgument, "[http] TLS certificate {}: {}", o.tls_cert, ec.message());
      tls_->use_private_key_file(o.tls_key, asio::ssl::context::pem, ec);
      if (ec) return fail(StatusCode::kInvalidArgument, "[http] TLS key {}: {}", o.tls_key, ec.message());
    }
    Tcp::resolver resolver(*io_);
    const auto found = resolver.resolve(o.host, std::to_string(o.port), Tcp::resolver::passive, ec);
    if (ec || found.empty())
      return fail(StatusCode::kInvalidArgument, "[http] host {}: {}", o.host, ec ? ec.message() : "no address");
    const Tcp::endpoint endpoint = found.begin()->endpoint();
    if (!o.why_loopback_only.empty() && !endpoint.address().is_loopback())
      return fail(StatusCode::kInvalidArgument, "[http] host {} can be reached from other machines, {}", o.host,
                  o.why_loopback_only);
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) acceptor_.set_option(Tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(4096, ec);
    if (ec)
      return fail(StatusCode::kUnavailable, "[http] {} port {}: {}; another --port may be free", o.host, o.port,
                  ec.message());
    port_ = acceptor_.local_endpoint().port();
    asio::co_spawn(acceptor_.get_executor(), [this] { return accept(); }, asio::detached);
    asio::co_spawn(acceptor_.get_executor(), [this] { return sweep(); }, asio::detached);
    for (int i = 0; i < kIoThreads; ++i)
      threads_.emplace_back([this] {
        name_thread("zrt-io");
        io_->run();
      });
    return {};
  }

  std::uint16_t port() const override { return port_; }
  TransportCounts counts() const override {
    TransportCounts c;
    c.accepted = shared_->accepted, c.refused = shared_->refused, c.requests = shared_->requests;
    c.bad_requests = shared_->bad_requests, c.timed_out = shared_->timed_out;
    c.held_bytes = shared_->bodies->held() + shared_->inputs->held();
    const std::lock_guard lock(shared_->mutex);
    c.open = static_cast<std::uint32_t>(shared_->open.size());
    return c;
  }

  bool drain(double timeout_s) override {
    shared_->is_draining = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
    std::unique_lock lock(shared_->mutex);
    for (const auto& session : shared_->open) session->quit();
    return shared_->left.wait_for(lock, seconds(timeout_s), [&] { return shared_->open.empty(); });
  }

  void close() override {
    if (threads_.empty()) return;
    shared_->is_draining = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      is_stopping_ = true;
      sweeper_.cancel();
    });
    {
      std::unique_lock lock(shared_->mutex);
      for (const auto& session : shared_->open) session->stop();
      shared_->left.wait_for(lock, std::chrono::seconds(5), [&] { return shared_->open.empty(); });
    }
    io_->stop();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    // Runs the completion handlers of the closed sockets, because they own sessions, and sessions own the io_context.
    io_->restart();
    io_->poll();
  }

 private:
  Task accept() {
    for (;;) {
      Socket socket(asio::make_strand(*io_));
      auto [ec] = co_await acceptor_.async_accept(socket, kAwait);
      if (!acceptor_.is_open()) co_return;
      if (ec) {  // mostly out of descriptors; some become free when open connections end
        log().warn("a connection could not be taken: {}", ec.message());
        Timer pause(acceptor_.get_executor(), std::chrono::milliseconds(50));
        co_await pause.async_wait(kAwait);
        continue;
      }
      error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      const auto address = socket.remote_endpoint(ignored).address().to_string();
      auto session = make_session(shared_, io_, address, std::move(socket), tls_ ? &*tls_ : nullptr);
      if (!shared_->enter(session, address)) {
        ++shared_->refused;
        continue;  // the session's destructor closes the socket
      }
      ++shared_->accepted;
      session->start();
    }
  }

  Task sweep() {
    while (!is_stopping_) {
      sweeper_.expires_after(kSweep);
      co_await sweeper_.async_wait(kAwait);
      const auto now = Clock::now();
      const std::lock_guard lock(shared_->mutex);
      for (const auto& session : shared_->open) session->sweep(now);
    }
  }

  const std::shared_ptr<Sessions> shared_;
  // Shared, because answers may outlive the transport and post to it.
  const std::shared_ptr<asio::io_context> io_ = std::make_shared<asio::io_context>(kIoThreads);
  asio::basic_socket_acceptor<Tcp, Executor> acceptor_;
  Timer sweeper_;
  std::optional<asio::ssl::context> tls_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
  bool is_stopping_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> Transport::listen(const TransportOptions& options, Handler handler) {
  auto transport = std::make_unique<TransportImpl>(options, std::move(handler));
  ZRT_CHECK_OK(transport->start());
  return transport;
}

}  // namespace zinc_rt::server
