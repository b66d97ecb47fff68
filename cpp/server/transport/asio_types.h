// Names the Boost.Asio types of this library: sockets, timers and coroutines. The executor of all of them is a strand,
// so that handlers of one connection never run on two threads at once.
#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>

#include <chrono>

namespace zinc_rt::server {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Executor = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
using TlsStream = asio::ssl::stream<Socket>;
using Task = asio::awaitable<void, Executor>;
template <class T>
using TaskOf = asio::awaitable<T, Executor>;
// Pass named variables to coroutines: g++ 12 destroys some temporaries of a co_await expression twice.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>{});

inline Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace zinc_rt::server
