// Implements the functions of SessionOf that start, read from and end a connection.
#include <poll.h>

#include "base/log.h"
#include "server/transport/session_of.h"

namespace zinc_rt::server {
namespace {

constexpr auto kLinger = std::chrono::seconds(1);

}  // namespace

template <class Stream>
void SessionOf<Stream>::sweep(Clock::time_point now) {
  asio::post(executor_, [self = this->shared_from_this(), now] {
    if (self->answer_) self->answer_->beat(now - seconds(self->shared_->options.heartbeat_s));
    if (now < self->deadline_ || self->is_closed_) return;
    if (self->phase_ != Phase::kLinger) ++self->shared_->timed_out;
    self->is_late_ = true;
    self->deadline_ = Clock::time_point::max();
    if (self->phase_ == Phase::kRequest)
      self->wake_.cancel();  // serve_one() or read_body() then answers 408
    else
      self->close();
  });
}

template <class Stream>
void SessionOf<Stream>::close() {
  error_code ignored;
  socket().close(ignored);
  is_closed_ = true;
  wake_.cancel();
  space_.cancel();
}

template <class Stream>
Task SessionOf<Stream>::run() {
  const auto self = this->shared_from_this();
  allow(shared_->options.head_timeout_s);
  asio::co_spawn(executor_, [self] { return self->watch_for_reset(); }, asio::detached);
  bool is_ready = true;
  if constexpr (kIsTls) {
    auto [ec] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
    is_ready = !ec;
  }
  if (is_ready) {
    asio::co_spawn(executor_, [self] { return self->read_all(); }, asio::detached);
    try {
      while (co_await serve_one()) {
      }
      co_await say_goodbye();
    } catch (const std::exception& error) {  // mostly out of memory; only this connection ends
      log().error("a connection ended by an exception: {}", error.what());
    }
  }
  close();
  if (answer_) answer_->set_gone();
  answer_ = nullptr;
  shared_->leave(self, address_);
}

template <class Stream>
Task SessionOf<Stream>::watch_for_reset() {
  auto [ec] = co_await socket().async_wait(Socket::wait_error, kAwait);
  if (ec || is_closed_) co_return;
  pollfd look{socket().native_handle(), 0, 0};
  if (::poll(&look, 1, 0) > 0 && (look.revents & (POLLERR | POLLHUP)) != 0) close();
}

template <class Stream>
Task SessionOf<Stream>::read_all() {
  while (!is_closed_ && !is_eof_) {
    if (in_.size() >= kReadAhead && !is_discarding_) {
      space_.expires_at(Clock::time_point::max());
      co_await space_.async_wait(kAwait);
      continue;
    }
    error_code failure;
    if constexpr (kIsTls) {
      std::string piece(4096, '\0');
      const auto buffer = asio::buffer(piece);
      auto [ec, n] = co_await stream_.async_read_some(buffer, kAwait);
      failure = ec;
      if (!ec) in_.append(piece, 0, n);
    } else {
      auto [ec] = co_await stream_.async_wait(Socket::wait_read, kAwait);
      failure = ec ? ec : read_what_is_there();
    }
    if (failure) is_eof_ = true;
    if (failure && failure != asio::error::eof) close();
    if (is_discarding_) in_.clear();
    if (!hold_input()) {
      ++shared_->refused;
      close();
    }
    wake_.cancel();
  }
}

template <class Stream>
error_code SessionOf<Stream>::read_what_is_there() {
  char piece[16384];
  error_code ec;
  socket().non_blocking(true, ec);
  const std::size_t n = socket().read_some(asio::buffer(piece), ec);
  in_.append(piece, n);
  return ec == asio::error::would_block ? error_code() : ec;
}

// Reads and discards for a short time what the client still sends. Closing a socket with unread bytes would reset the
// connection, and the client might lose the answer.
template <class Stream>
Task SessionOf<Stream>::say_goodbye() {
  if (is_closed_) co_return;
  phase_ = Phase::kLinger;
  is_discarding_ = true;
  consume(in_.size());
  deadline_ = Clock::now() + kLinger;
  if constexpr (kIsTls) co_await stream_.async_shutdown(kAwait);
  error_code ignored;
  socket().shutdown(Tcp::socket::shutdown_send, ignored);
  while (!is_eof_ && !is_closed_) co_await wait();
}

std::shared_ptr<Session> make_session(std::shared_ptr<Sessions> shared, std::shared_ptr<asio::io_context> io,
                                      const std::string& address, Socket socket, asio::ssl::context* tls) {
  if (tls != nullptr)
    return std::make_shared<SessionOf<TlsStream>>(std::move(shared), std::move(io), address, std::move(socket), *tls);
  return std::make_shared<SessionOf<Socket>>(std::move(shared), std::move(io), address, std::move(socket));
}

}  // namespace zinc_rt::server
