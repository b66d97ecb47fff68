#include "server/transport.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <thread>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "server/answer.h"
#include "server/api_error.h"
#include "server/http_head.h"

namespace zinc_rt::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
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
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>{});

constexpr int kIoThreads = 2;
constexpr auto kSweep = std::chrono::milliseconds(500);
constexpr std::size_t kReadAhead = 64u << 10;  // bytes of a client that wait to be parsed
constexpr auto kLinger = std::chrono::seconds(1);

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

// What the listener's timer looks after.
class Session {
 public:
  virtual ~Session() = default;
  virtual void sweep(Clock::time_point now) = 0;  // any thread
  virtual void stop() = 0;                        // any thread: closes the socket now
  virtual void quit() = 0;                        // any thread: no further request after the one under way
};

// Lives as long as any session.
struct Shared {
  TransportOptions options;
  Transport::Handler handler;
  std::atomic<std::uint64_t> accepted{0}, refused{0}, requests{0}, bad_requests{0}, timed_out{0};
  std::atomic<bool> is_draining{false};

  std::mutex mutex;
  std::condition_variable left;
  std::unordered_set<std::shared_ptr<Session>> sessions;
  std::map<std::string, std::uint32_t> by_address;

  bool enter(const std::shared_ptr<Session>& session, const std::string& address) {
    const std::lock_guard lock(mutex);
    if (is_draining || sessions.size() >= options.max_connections) return false;
    auto& n = by_address[address];
    if (n >= options.max_connections_per_address) return false;
    ++n;
    sessions.insert(session);
    return true;
  }
  void leave(const std::shared_ptr<Session>& session, const std::string& address) {
    const std::lock_guard lock(mutex);
    if (sessions.erase(session) == 0) return;
    if (const auto it = by_address.find(address); --it->second == 0) by_address.erase(it);
    left.notify_all();
  }
};

// One connection: a reader that fills `in_`, and a loop that takes requests from it and sends their answers. Both run
// on the strand, and look at their conditions again after each wait.
template <class Stream>
class SessionOf final : public Session, public std::enable_shared_from_this<SessionOf<Stream>> {
 public:
  template <class... Args>
  SessionOf(std::shared_ptr<Shared> shared, std::shared_ptr<asio::io_context> io, std::string address, Socket socket,
            Args&... args)
      : shared_(std::move(shared)),
        io_(std::move(io)),
        address_(std::move(address)),
        executor_(socket.get_executor()),
        stream_(std::move(socket), args...),
        wake_(executor_),
        space_(executor_) {}

  void start() {
    asio::co_spawn(executor_, [self = this->shared_from_this()] { return self->run(); }, asio::detached);
  }

  void sweep(Clock::time_point now) override {
    asio::post(executor_, [self = this->shared_from_this(), now] {
      if (self->answer_) self->answer_->beat(now - seconds(self->shared_->options.heartbeat_s));
      if (now < self->deadline_) return;
      self->is_late_ = true;
      self->close();
    });
  }
  void stop() override {
    asio::post(executor_, [self = this->shared_from_this()] { self->close(); });
  }
  void quit() override {
    asio::post(executor_, [self = this->shared_from_this()] {
      self->is_quitting_ = true;
      self->wake_.cancel();
    });
  }

 private:
  static constexpr bool kIsTls = !std::is_same_v<Stream, Socket>;
  Socket& socket() {
    if constexpr (kIsTls)
      return stream_.next_layer();
    else
      return stream_;
  }

  void close() {
    error_code ignored;
    socket().close(ignored);
    is_closed_ = true;
    wake_.cancel();
    space_.cancel();
  }

  Task wait() {
    wake_.expires_at(Clock::time_point::max());
    co_await wake_.async_wait(kAwait);
  }
  void allow(double time_s) { deadline_ = Clock::now() + seconds(time_s); }

  Task run() {
    const auto self = this->shared_from_this();
    allow(shared_->options.head_timeout_s);
    bool is_ready = true;
    if constexpr (kIsTls) {
      auto [ec] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
      is_ready = !ec;
    }
    if (is_ready) {
      asio::co_spawn(executor_, [self] { return self->read_all(); }, asio::detached);
      while (co_await serve_one()) {
      }
      co_await say_goodbye();
    }
    if (is_late_) ++shared_->timed_out;
    close();
    if (answer_) answer_->set_gone(true);
    answer_ = nullptr;
    shared_->leave(self, address_);
  }

  void consume(std::size_t n) {
    in_.erase(0, n);
    space_.cancel();
  }

  // Until the client closes: so that its leaving is noticed whatever goes on.
  Task read_all() {
    while (!is_closed_ && !is_eof_) {
      if (in_.size() >= kReadAhead && !is_discarding_) {
        space_.expires_at(Clock::time_point::max());
        co_await space_.async_wait(kAwait);
        continue;
      }
      bool is_good = false;
      if constexpr (kIsTls) {
        std::string piece(4096, '\0');
        const auto buffer = asio::buffer(piece);
        auto [ec, n] = co_await stream_.async_read_some(buffer, kAwait);
        is_good = !ec;
        if (is_good) in_.append(piece, 0, n);
      } else {
        auto [ec] = co_await stream_.async_wait(Socket::wait_read, kAwait);
        is_good = !ec && read_what_is_there();
      }
      if (!is_good) is_eof_ = true;
      if (is_discarding_) in_.clear();
      wake_.cancel();
    }
  }

  bool read_what_is_there() {
    char piece[16384];
    error_code ec;
    socket().non_blocking(true, ec);
    const std::size_t n = socket().read_some(asio::buffer(piece), ec);
    if (ec == asio::error::would_block) return true;
    in_.append(piece, n);
    return !ec && n > 0;
  }

  // The answer to a message that is no request. Arguments of coroutines are named variables throughout: g++ 12 destroys
  // some temporaries of a co_await expression twice.
  Task refuse(HeadScan bad) {
    ++shared_->bad_requests;
    auto answer = std::make_shared<Answer>(AnswerOptions{}, [] {});
    ApiError error;
    error.status = bad.status;
    error.message = "[http] " + bad.complaint;
    answer->respond(error_response(error));
    allow(shared_->options.write_timeout_s);
    const auto bytes = answer->take().bytes;
    const auto buffer = asio::buffer(bytes);
    co_await asio::async_write(stream_, buffer, kAwait);
  }
  static HeadScan complaint(std::string text, int status = 400) { return {HeadScan::kBad, 0, status, std::move(text)}; }

  // False: the connection ends.
  TaskOf<bool> serve_one() {
    const TransportOptions& o = shared_->options;
    HeadScan scan;
    bool has_begun = false;
    std::size_t n_scanned = 0;
    if (n_requests_ > 0) allow(o.idle_timeout_s);
    if (in_.empty()) in_.shrink_to_fit();
    for (;;) {
      if (is_closed_) co_return false;
      if (!in_.empty() && !has_begun) {
        has_begun = true;
        allow(o.head_timeout_s);
      }
      // Bytes without a line feed change nothing, but for the first ones, which may be of another protocol.
      const bool is_new = in_.size() > n_scanned && (n_scanned == 0 || in_.find('\n', n_scanned) != std::string::npos ||
                                                     in_.size() > o.max_head_bytes);
      n_scanned = in_.size();
      if (is_new) scan = scan_head(in_, o.max_head_bytes);
      if (scan.state == HeadScan::kWhole) break;
      if (scan.state == HeadScan::kBad) {
        co_await refuse(scan);
        co_return false;
      }
      if (is_eof_) {
        const auto bad = complaint("the connection ended within the head of a request");
        if (has_begun) co_await refuse(bad);
        co_return false;
      }
      if (is_quitting_ && !has_begun) co_return false;
      co_await wait();
    }
    co_return co_await serve(scan.size);
  }

  TaskOf<bool> serve(std::size_t head_size) {
    const TransportOptions& o = shared_->options;
    http::request_parser<http::string_body> parser;
    parser.eager(true);
    parser.header_limit(static_cast<std::uint32_t>(o.max_head_bytes));
    parser.body_limit(o.max_body_bytes);
    error_code ec;
    const std::size_t skip = in_.starts_with("\r\n") ? 2 : 0;
    parser.put(asio::buffer(in_.data() + skip, head_size - skip), ec);
    consume(head_size);
    if (ec == http::error::need_more) ec = {};
    if (!ec && !parser.is_header_done()) ec = http::error::bad_field;
    const auto expect = parser.get()[http::field::expect];
    const bool waits = parser.get().version() == 11 && !expect.empty();  // HTTP/1.0 knows of no expectations
    if (!ec && waits && !boost::beast::iequals(expect, "100-continue")) {
      const auto bad = complaint("an Expect that is not \"100-continue\"", 417);
      co_await refuse(bad);
      co_return false;
    }
    if (!ec && !parser.is_done()) co_await read_body(parser, waits, ec);
    if (is_closed_) co_return false;
    if (ec) {
      auto bad = complaint("the message breaks HTTP: " + ec.message());
      if (is_eof_) bad.complaint = "the connection ended within the body of a request";
      if (ec == http::error::body_limit)
        bad = complaint(fmt::format("the body has more than {} bytes", o.max_body_bytes), 413);
      co_await refuse(bad);
      co_return false;
    }
    auto& message = parser.get();
    HttpRequest request;
    request.method = std::string(message.method_string());
    request.address = address_;
    const auto [host, target] = split_target(message.target());
    if (!host.empty()) message.set(http::field::host, host);  // whatever Host says
    const auto mark = target.find('?');
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    if (!percent_decode(std::string_view(target).substr(0, mark), request.path)) {
      const auto bad = complaint("the request target has a broken percent escape, or is not UTF-8");
      co_await refuse(bad);
      co_return false;
    }
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    request.body = std::move(message.body());
    ++n_requests_;
    ++shared_->requests;
    AnswerOptions options;
    options.max_unsent_bytes = o.max_unsent_bytes;
    options.is_head = request.method == "HEAD";
    options.keep_alive = message.keep_alive() && !is_quitting_ && !shared_->is_draining;
    options.is_http_1_0 = message.version() == 10;
    answer_ = std::make_shared<Answer>(options, [weak = this->weak_from_this(), executor = executor_, io = io_] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->wake_.cancel();
      });
    });
    deadline_ = Clock::time_point::max();
    // When the handler and all that it gave the connection to have let it go, the answer is as it is.
    shared_->handler(std::move(request),
                     std::shared_ptr<Connection>(answer_.get(), [answer = answer_](Connection*) { answer->drop(); }));
    const bool goes_on = co_await send();
    answer_ = nullptr;
    co_return goes_on;
  }

  Task read_body(http::request_parser<http::string_body>& parser, bool client_waits, error_code& ec) {
    allow(shared_->options.body_timeout_s);
    if (client_waits) {
      static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
      const auto buffer = asio::buffer(kGoOn);
      co_await asio::async_write(stream_, buffer, kAwait);
    }
    while (!ec && !parser.is_done() && !is_closed_) {
      if (in_.empty()) {
        if (is_eof_) {
          ec = http::error::partial_message;
          co_return;
        }
        co_await wait();
        continue;
      }
      const std::size_t n = parser.put(asio::buffer(in_), ec);
      consume(n);
      if (ec != http::error::need_more) continue;
      ec = {};
      if (n > 0) continue;
      if (in_.size() >= kReadAhead)
        ec = http::error::bad_chunk;  // a chunk's head as long as that
      else if (is_eof_)
        ec = http::error::partial_message;
      else
        co_await wait();
    }
  }

  // True: all of it went out, and another request may come.
  TaskOf<bool> send() {
    bool has_told = false;
    for (;;) {
      if (is_closed_) co_return false;
      auto taken = answer_->take();
      if (!taken.bytes.empty()) {
        allow(shared_->options.write_timeout_s);
        const auto buffer = asio::buffer(taken.bytes);
        auto [ec, n] = co_await asio::async_write(stream_, buffer, kAwait);
        deadline_ = Clock::time_point::max();
        if (ec) co_return false;
      }
      if (taken.is_over) co_return taken.keep_alive && !(is_eof_ && in_.empty()) && !is_quitting_;
      if (!taken.bytes.empty()) continue;
      if (is_eof_ && !has_told) {
        has_told = true;
        answer_->set_gone(false);
        continue;
      }
      co_await wait();
    }
  }

  // What the client has still to say is read and forgotten for a moment: closing on unread bytes would reset the
  // connection, and the answer might be lost with it.
  Task say_goodbye() {
    if (is_closed_) co_return;
    is_discarding_ = true;
    consume(in_.size());
    deadline_ = Clock::now() + kLinger;
    if constexpr (kIsTls) co_await stream_.async_shutdown(kAwait);
    error_code ignored;
    socket().shutdown(Tcp::socket::shutdown_send, ignored);
    while (!is_eof_ && !is_closed_) co_await wait();
    is_late_ = false;
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<asio::io_context> io_;
  const std::string address_;
  Executor executor_;
  Stream stream_;
  Timer wake_, space_;  // for the loop, and for the reader while `in_` is full
  std::string in_;
  std::shared_ptr<Answer> answer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::uint64_t n_requests_ = 0;
  bool is_eof_ = false, is_closed_ = false, is_late_ = false, is_quitting_ = false, is_discarding_ = false;
};

class TransportImpl final : public Transport {
 public:
  TransportImpl(const TransportOptions& options, Handler handler)
      : acceptor_(asio::make_strand(*io_)), sweeper_(acceptor_.get_executor()) {
    shared_->options = options;
    shared_->handler = std::move(handler);
  }
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
    const std::lock_guard lock(shared_->mutex);
    c.open = static_cast<std::uint32_t>(shared_->sessions.size());
    return c;
  }

  bool drain(double timeout_s) override {
    shared_->is_draining = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
    std::unique_lock lock(shared_->mutex);
    for (const auto& session : shared_->sessions) session->quit();
    return shared_->left.wait_for(lock, seconds(timeout_s), [&] { return shared_->sessions.empty(); });
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
      for (const auto& session : shared_->sessions) session->stop();
      shared_->left.wait_for(lock, std::chrono::seconds(5), [&] { return shared_->sessions.empty(); });
    }
    io_->stop();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  Task accept() {
    for (;;) {
      Socket socket(asio::make_strand(*io_));
      auto [ec] = co_await acceptor_.async_accept(socket, kAwait);
      if (!acceptor_.is_open()) co_return;
      if (ec) {  // no descriptor left, above all: those that are there go on, and some will end
        log().warn("a connection could not be taken: {}", ec.message());
        Timer pause(acceptor_.get_executor(), std::chrono::milliseconds(50));
        co_await pause.async_wait(kAwait);
        continue;
      }
      error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      const auto address = socket.remote_endpoint(ignored).address().to_string();
      if (tls_)
        begin<TlsStream>(address, std::move(socket), *tls_);
      else
        begin<Socket>(address, std::move(socket));
    }
  }

  template <class Stream, class... Args>
  void begin(const std::string& address, Socket socket, Args&... args) {
    auto session = std::make_shared<SessionOf<Stream>>(shared_, io_, address, std::move(socket), args...);
    if (!shared_->enter(session, address)) {
      ++shared_->refused;
      return;  // closed with it
    }
    ++shared_->accepted;
    session->start();
  }

  Task sweep() {
    while (!is_stopping_) {
      sweeper_.expires_after(kSweep);
      co_await sweeper_.async_wait(kAwait);
      const auto now = Clock::now();
      const std::lock_guard lock(shared_->mutex);
      for (const auto& session : shared_->sessions) session->sweep(now);
    }
  }

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  // Answers may outlive the transport, and post to it.
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
