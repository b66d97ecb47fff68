#include "server/transport.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http.hpp>

#include <poll.h>

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
constexpr auto kProbeDelay = std::chrono::milliseconds(250);  // for an answer to begin, before one is put in front

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
  Shared(const TransportOptions& options, Transport::Handler handler)
      : options(options),
        handler(std::move(handler)),
        bodies(std::make_shared<ByteBudget>(options.bodies)),
        inputs(std::make_shared<ByteBudget>(options.inputs)) {}

  const TransportOptions options;
  const Transport::Handler handler;
  const std::shared_ptr<ByteBudget> bodies, inputs;
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

// A body that grows as its bytes come: what a head says of its length is the client's word alone.
struct GrowingBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>&, value_type& body) : body_(body) {}
    static void init(const boost::optional<std::uint64_t>&, error_code& ec) { ec = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& ec) {
      ec = {};
      std::size_t n = 0;
      for (const auto piece : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(piece.data()), piece.size());
        n += piece.size();
      }
      return n;
    }
    static void finish(error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};
using Parser = http::request_parser<GrowingBody>;

// One connection: a reader that fills `in_`, and a loop that takes requests from it and sends their answers. Both run
// on the strand, and look at their conditions again after each wait.
//
// How a client leaves. A reset is seen at once in every phase. An orderly end of its side may be all of it or, over
// plain TCP, its sending half: what it sent is answered, and something small is sent to see whether it still reads.
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
        space_(executor_),
        in_held_(shared_->inputs, address_, {}) {}

  void start() {
    asio::co_spawn(executor_, [self = this->shared_from_this()] { return self->run(); }, asio::detached);
  }

  void sweep(Clock::time_point now) override {
    asio::post(executor_, [self = this->shared_from_this(), now] {
      if (self->answer_) self->answer_->beat(now - seconds(self->shared_->options.heartbeat_s));
      if (now < self->deadline_ || self->is_closed_) return;
      if (self->phase_ != Phase::kLinger) ++self->shared_->timed_out;
      self->is_late_ = true;
      self->deadline_ = Clock::time_point::max();
      if (self->phase_ == Phase::kRequest)
        self->wake_.cancel();  // it is told
      else
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

  Task wait(Clock::time_point until = Clock::time_point::max()) {
    wake_.expires_at(until);
    co_await wake_.async_wait(kAwait);
  }
  void allow(double time_s) { deadline_ = Clock::now() + seconds(time_s); }

  Task run() {
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
      } catch (const std::exception& error) {  // of memory, above all: this connection ends, the others go on
        log().error("a connection ended by an exception: {}", error.what());
      }
    }
    close();
    if (answer_) answer_->set_gone();
    answer_ = nullptr;
    shared_->leave(self, address_);
  }

  void consume(std::size_t n) {
    in_.erase(0, n);
    hold_input();
    space_.cancel();
  }

  // False: there is no room for what came.
  bool hold_input() {
    const std::size_t n = in_.size() > TransportOptions::kFreeInput ? in_.size() : 0;
    return in_held_.resize(n) == ByteBudget::Full::kNo;
  }

  // Whatever the reader waits for, such as room in `in_`.
  Task watch_for_reset() {
    auto [ec] = co_await socket().async_wait(Socket::wait_error, kAwait);
    if (ec || is_closed_) co_return;
    pollfd look{socket().native_handle(), 0, 0};
    if (::poll(&look, 1, 0) > 0 && (look.revents & (POLLERR | POLLHUP)) != 0) close();
  }

  // Until the client closes: so that its leaving is noticed whatever goes on.
  Task read_all() {
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

  error_code read_what_is_there() {
    char piece[16384];
    error_code ec;
    socket().non_blocking(true, ec);
    const std::size_t n = socket().read_some(asio::buffer(piece), ec);
    in_.append(piece, n);
    return ec == asio::error::would_block ? error_code() : ec;
  }

  // The answer to a message that is no request. Arguments of coroutines are named variables throughout: g++ 12 destroys
  // some temporaries of a co_await expression twice.
  Task refuse(HeadScan bad) {
    if (bad.status != 408) ++shared_->bad_requests;
    auto answer = std::make_shared<Answer>(AnswerOptions{}, [] {});
    ApiError error;
    error.status = bad.status;
    error.message = "[http] " + bad.complaint;
    if (bad.status == 429 || bad.status == 503) error.retry_after_s = 1;
    answer->respond(error_response(error));
    phase_ = Phase::kAnswer;
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
    phase_ = Phase::kIdle;
    if (n_requests_ > 0) allow(o.idle_timeout_s);
    if (in_.empty()) in_.shrink_to_fit();
    for (;;) {
      if (is_closed_) co_return false;
      if (!in_.empty() && !has_begun) {
        has_begun = true;
        phase_ = Phase::kRequest;
        allow(o.head_timeout_s);
      }
      // Bytes without a line feed change nothing, but for the first ones, which may be of another protocol.
      const bool is_new = in_.size() > n_scanned && (n_scanned == 0 || in_.find('\n', n_scanned) != std::string::npos ||
                                                     in_.size() > o.max_head_bytes);
      n_scanned = in_.size();
      if (is_new) scan = scan_head(in_, o.max_head_bytes);
      if (scan.state == HeadScan::kWhole) break;
      if (scan.state == HeadScan::kMore && is_late_)
        scan = complaint(fmt::format("the head of the request did not end within {:g} s", o.head_timeout_s), 408);
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
    Parser parser;
    HttpRequest request;
    HeadScan bad = read_head(parser, head_size, request);
    if (bad.state == HeadScan::kBad) {
      co_await refuse(bad);
      co_return false;
    }
    ++n_requests_;
    ++shared_->requests;
    HeadVerdict verdict = shared_->handler(request);
    const bool has_body = !parser.is_done();
    if (verdict.answer) {
      const std::size_t n_unread = has_body ? parser.content_length().value_or(UINT64_MAX) : 0;
      co_return co_await answer_unread(parser, std::move(*verdict.answer), n_unread);
    }
    request.held = ByteBudget::Hold(shared_->bodies, address_, std::move(verdict.owner));
    if (has_body) {
      co_await read_body(parser, request.held, bad);
      if (is_closed_) co_return false;
      if (bad.state == HeadScan::kBad) {
        co_await refuse(bad);
        co_return false;
      }
    }
    request.body = std::move(parser.get().body());
    answer_ = make_answer(parser, true);
    phase_ = Phase::kAnswer;
    deadline_ = Clock::time_point::max();
    // When the handler and all that it gave the connection to have let it go, the answer is as it is.
    verdict.handle(std::move(request),
                   std::shared_ptr<Connection>(answer_.get(), [answer = answer_](Connection*) { answer->drop(); }));
    verdict.handle = nullptr;
    const bool goes_on = co_await send();
    answer_->set_gone();  // nothing, where the answer went out whole
    answer_ = nullptr;
    co_return goes_on;
  }

  // What the parser makes of the head, as handlers see it; kBad: what is wrong with it.
  HeadScan read_head(Parser& parser, std::size_t head_size, HttpRequest& request) {
    const TransportOptions& o = shared_->options;
    parser.eager(true);
    parser.header_limit(static_cast<std::uint32_t>(o.max_head_bytes));
    parser.body_limit(o.max_body_bytes);
    error_code ec;
    const std::size_t skip = in_.starts_with("\r\n") ? 2 : 0;
    parser.put(asio::buffer(in_.data() + skip, head_size - skip), ec);
    consume(head_size);
    if (ec == http::error::need_more) ec = {};
    if (!ec && !parser.is_header_done()) ec = http::error::bad_field;
    if (ec) return complaint_of(ec);
    auto& message = parser.get();
    if (const auto expect = message[http::field::expect];
        message.version() == 11 && !expect.empty() && !boost::beast::iequals(expect, "100-continue"))
      return complaint("an Expect that is not \"100-continue\"", 417);
    request.method = std::string(message.method_string());
    request.address = address_;
    const auto [host, target] = split_target(message.target());
    if (!host.empty()) message.set(http::field::host, host);  // whatever Host says
    const auto mark = target.find('?');
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    if (!percent_decode(std::string_view(target).substr(0, mark), request.path))
      return complaint("the request target has a broken percent escape, or is not UTF-8");
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    return {};
  }

  HeadScan complaint_of(const error_code& ec) const {
    if (ec == http::error::body_limit)
      return complaint(fmt::format("the body has more than {} bytes", shared_->options.max_body_bytes), 413);
    return complaint("the message breaks HTTP: " + ec.message());
  }

  // Clients of HTTP/1.0 know of no expectations.
  static bool expects(const Parser& parser) {
    return parser.get().version() == 11 && !parser.get()[http::field::expect].empty();
  }

  std::shared_ptr<Answer> make_answer(const Parser& parser, bool may_go_on) {
    const auto& message = parser.get();
    AnswerOptions options;
    options.max_unsent_bytes = shared_->options.max_unsent_bytes;
    options.is_head = message.method() == http::verb::head;
    options.keep_alive = may_go_on && message.keep_alive() && !is_quitting_ && !shared_->is_draining;
    options.is_http_1_0 = message.version() == 10;
    // io, which may be the last of its owners, goes after the executor that needs it.
    return std::make_shared<Answer>(options, [io = io_, weak = this->weak_from_this(), executor = executor_] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->wake_.cancel();
      });
    });
  }

  // Answers a request whose body nobody wants. One that is short and on its way is passed over, so that the connection
  // can go on.
  TaskOf<bool> answer_unread(const Parser& parser, HttpResponse response, std::size_t n_unread) {
    const bool is_passed_over = n_unread <= kReadAhead && !(n_unread > 0 && expects(parser));
    answer_ = make_answer(parser, is_passed_over);
    answer_->respond(std::move(response));
    phase_ = Phase::kAnswer;
    bool goes_on = co_await send();
    answer_ = nullptr;
    allow(shared_->options.body_stall_timeout_s);
    while (goes_on && n_unread > 0) {
      if (is_closed_ || (is_eof_ && in_.empty())) co_return false;
      const std::size_t n = std::min(n_unread, in_.size());
      consume(n);
      n_unread -= n;
      if (n == 0) co_await wait();
    }
    co_return goes_on;
  }

  // kBad in `bad`: what to answer instead.
  Task read_body(Parser& parser, ByteBudget::Hold& held, HeadScan& bad) {
    const TransportOptions& o = shared_->options;
    phase_ = Phase::kRequest;
    const auto last = Clock::now() + seconds(o.body_timeout_s);
    const auto came = [&] { deadline_ = std::min(last, Clock::now() + seconds(o.body_stall_timeout_s)); };
    came();
    if (expects(parser)) {
      static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
      const auto buffer = asio::buffer(kGoOn);
      co_await asio::async_write(stream_, buffer, kAwait);
    }
    while (!parser.is_done() && !is_closed_) {
      if (is_late_) {
        bad = complaint(fmt::format("the body did not end within {:g} s, or had no byte for {:g} s", o.body_timeout_s,
                                    o.body_stall_timeout_s),
                        408);
        co_return;
      }
      std::size_t n = 0;
      if (!in_.empty()) {
        error_code ec;
        n = parser.put(asio::buffer(in_), ec);
        consume(n);
        if (ec == http::error::need_more) ec = {};
        if (!ec && n == 0 && in_.size() >= kReadAhead) ec = http::error::bad_chunk;  // a chunk's head as long as that
        if (ec) bad = complaint_of(ec);
        if (!ec) bad = room_for(parser.get().body().size(), held);
        if (bad.state == HeadScan::kBad) co_return;
      }
      if (n > 0) {
        came();
      } else if (is_eof_) {
        bad = complaint("the connection ended within the body of a request");
        co_return;
      } else {
        co_await wait();
      }
    }
  }

  HeadScan room_for(std::size_t n_bytes, ByteBudget::Hold& held) const {
    const auto& most = shared_->bodies->limits();
    switch (held.resize(n_bytes)) {
      case ByteBudget::Full::kNo: return {};
      case ByteBudget::Full::kInAll:
        return complaint(
            fmt::format("all bodies under way have {} bytes, {} allowed in all", shared_->bodies->held(), most.in_all),
            503);
      case ByteBudget::Full::kAddress:
        return complaint(
            fmt::format("the bodies under way of {} would have more than {} bytes", address_, most.per_address), 429);
      case ByteBudget::Full::kOwner:
        return complaint(
            fmt::format("the bodies under way of this key's tenant would have more than {} bytes", most.per_owner),
            429);
    }
    return {};
  }

  // True: all of it went out, and another request may come.
  TaskOf<bool> send() {
    bool has_sent = false;
    std::optional<Clock::time_point> probe_at;  // once the client closed its side; max(): it was probed
    for (;;) {
      if (is_closed_) co_return false;
      auto taken = answer_->take();
      if (!taken.bytes.empty()) {
        allow(shared_->options.write_timeout_s);
        const auto buffer = asio::buffer(taken.bytes);
        auto [ec, n] = co_await asio::async_write(stream_, buffer, kAwait);
        deadline_ = Clock::time_point::max();
        if (ec) co_return false;
        has_sent = true;
      }
      if (taken.is_over) co_return taken.keep_alive && !(is_eof_ && in_.empty()) && !is_quitting_;
      if (!taken.bytes.empty()) continue;
      if (is_eof_ && kIsTls) co_return false;
      const auto now = Clock::now();
      if (is_eof_ && !probe_at) probe_at = has_sent ? now : now + kProbeDelay;
      if (probe_at && *probe_at <= now) {
        if (!answer_->probe()) co_return false;
        probe_at = Clock::time_point::max();
        continue;
      }
      const auto until = probe_at.value_or(Clock::time_point::max());
      co_await wait(until);
    }
  }

  // What the client has still to say is read and forgotten for a moment: closing on unread bytes would reset the
  // connection, and the answer might be lost with it.
  Task say_goodbye() {
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

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<asio::io_context> io_;
  const std::string address_;
  Executor executor_;
  Stream stream_;
  Timer wake_, space_;  // for the loop, and for the reader while `in_` is full
  std::string in_;
  ByteBudget::Hold in_held_;
  std::shared_ptr<Answer> answer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::uint64_t n_requests_ = 0;
  // kRequest: who is late in it is told, in the others cut off.
  enum class Phase : std::uint8_t { kIdle, kRequest, kAnswer, kLinger } phase_ = Phase::kIdle;
  bool is_eof_ = false, is_closed_ = false, is_late_ = false, is_quitting_ = false, is_discarding_ = false;
};

class TransportImpl final : public Transport {
 public:
  TransportImpl(const TransportOptions& options, Handler handler)
      : shared_(std::make_shared<Shared>(options, std::move(handler))),
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
    if (o.loopback_only && !endpoint.address().is_loopback())
      return fail(StatusCode::kInvalidArgument,
                  "[http] host {} can be reached from other machines, and without keys everyone there would be an "
                  "admin: give --api-key and --admin-key, or keys in --config; or say --allow-anonymous",
                  o.host);
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
    // What the closing of sockets ended and has not run yet: it holds sessions, and those the io_context.
    io_->restart();
    io_->poll();
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

  const std::shared_ptr<Shared> shared_;
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
