#include "client/http_client.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <unordered_set>

#include "base/error.h"
#include "base/growing_body.h"
#include "base/letter_case.h"

namespace zinc_rt::client {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using TlsStream = asio::ssl::stream<Socket>;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
using Task = asio::awaitable<void, Executor>;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>{});

constexpr std::uint32_t kMaxHead = 64u << 10;
constexpr std::size_t kMaxIdle = 1024;  // most connections that are kept open for later calls

// Link is a connection to the server or its proxy. Only the I/O thread uses it.
template <class Stream>
struct Link {
  template <class... Args>
  explicit Link(Args&&... args) : stream(std::forward<Args>(args)...) {}

  Socket& socket() {
    if constexpr (std::is_same_v<Stream, Socket>)
      return stream;
    else
      return stream.next_layer();
  }
  // Returns whether an idle connection can be used again: no byte has come since the last answer, and the server has
  // not closed it.
  bool is_quiet() {
    char byte;
    return ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  Stream stream;
  boost::beast::flat_buffer buffer;
};

template <class Stream>
class ClientOf final : public HttpClient {
 public:
  ClientOf(Url url, std::optional<Url> proxy) : url_(std::move(url)), proxy_(std::move(proxy)) {}
  ~ClientOf() override {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      is_closing_ = true;
      idle_.clear();
      for (const auto& call : calls_) call->hang_up();
      guard_.reset();  // without the guard, run() returns when the last call has ended
    });
    thread_.join();
  }

  Status begin() {
    error_code ec;
    Tcp::resolver resolver(io_);
    const Url& next = proxy_ ? *proxy_ : url_;
    const auto found = resolver.resolve(next.host, std::to_string(next.port), ec);
    for (const auto& entry : found) endpoints_.push_back(entry.endpoint());
    if (ec || endpoints_.empty())
      return fail(StatusCode::kUnavailable, "[http] {}{}: {}", proxy_ ? "the proxy " : "", next.host,
                  ec ? ec.message() : "it has no address");
    if (url_.is_tls) {
      tls_.set_default_verify_paths(ec);
      tls_.set_verify_mode(asio::ssl::verify_peer, ec);
    }
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  std::shared_ptr<HttpHandle> start(HttpCall call, HttpEvents events) override {
    auto state = std::make_shared<State>(io_, std::move(call), std::move(events));
    asio::post(io_, [this, state] {
      if (is_closing_) {
        state->hang_up();
        return state->finish();
      }
      calls_.insert(state);
      asio::co_spawn(io_, [this, state] { return run(state); }, asio::detached);
    });
    return state;
  }

 private:
  using LinkOf = Link<Stream>;

  struct State final : HttpHandle, std::enable_shared_from_this<State> {
    State(asio::io_context& io, HttpCall c, HttpEvents e)
        : executor(io.get_executor()), call(std::move(c)), events(std::move(e)), timer(io) {}

    void cancel() override {
      // The handle may outlive its client, so the client's executor must not be used after the call has ended.
      const std::lock_guard lock(mutex);
      if (!is_over) asio::post(executor, [self = this->shared_from_this()] { self->hang_up(); });
    }
    void hang_up() {
      if (end.kind == HttpEnd::kWhole) end.kind = HttpEnd::kCancelled;
      close();
    }
    void close() {
      error_code ignored;
      if (link) link->socket().close(ignored);
    }
    void set_end(HttpEnd::Kind kind, std::string error) {
      if (end.kind == HttpEnd::kWhole) end = {kind, std::move(error)};
    }
    void finish() {
      timer.cancel();
      {
        const std::lock_guard lock(mutex);
        is_over = true;
      }
      if (events.on_end) events.on_end(end);
      events = {};
    }

    const Executor executor;
    const HttpCall call;
    HttpEvents events;
    Timer timer;
    std::unique_ptr<LinkOf> link;
    HttpEnd end;  // kind stays kWhole unless an error is found
    std::mutex mutex;
    bool is_over = false;
  };
  using StatePtr = std::shared_ptr<State>;

  std::unique_ptr<LinkOf> make_link() {
    if constexpr (std::is_same_v<Stream, Socket>)
      return std::make_unique<LinkOf>(io_);
    else
      return std::make_unique<LinkOf>(io_, tls_);
  }

  Task run(StatePtr state) {
    watch(state);
    while (!idle_.empty() && !state->link) {
      if (idle_.back()->is_quiet()) state->link = std::move(idle_.back());
      idle_.pop_back();
    }
    if (!state->link && state->end.kind == HttpEnd::kWhole) {
      state->link = make_link();
      co_await connect(state);
    }
    bool keeps = false;
    if (state->end.kind == HttpEnd::kWhole) co_await exchange(state, keeps);
    if (keeps && state->end.kind == HttpEnd::kWhole && idle_.size() < kMaxIdle && !is_closing_)
      idle_.push_back(std::move(state->link));
    state->link.reset();
    calls_.erase(state);
    state->finish();
  }

  void watch(const StatePtr& state) {
    state->timer.expires_after(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state->call.timeout_s)));
    state->timer.async_wait([weak = std::weak_ptr(state)](error_code ec) {
      const auto late = weak.lock();
      if (ec || !late) return;
      late->set_end(HttpEnd::kTimeout, fmt::format("[http] no whole answer in {} s", late->call.timeout_s));
      late->close();
    });
  }

  // Coroutines get named variables as arguments, because g++ 12 destroys some temporaries of a co_await expression
  // twice.
  Task connect(StatePtr state) {
    auto& link = *state->link;
    const auto [ec, endpoint] = co_await asio::async_connect(link.socket(), endpoints_, kAwait);
    if (ec) {
      const auto place = proxy_ ? "the proxy " + proxy_->authority() : url_.authority();
      state->set_end(HttpEnd::kNoConnect, fmt::format("[http] {}: {}", place, ec.message()));
      co_return;
    }
    error_code ignored;
    link.socket().set_option(Tcp::no_delay(true), ignored);
    if constexpr (!std::is_same_v<Stream, Socket>) {
      if (proxy_) co_await ask_proxy(state);
      if (state->end.kind != HttpEnd::kWhole) co_return;
      const asio::ssl::host_name_verification verification(url_.host);
      link.stream.set_verify_callback(verification, ignored);
      SSL_set_tlsext_host_name(link.stream.native_handle(), url_.host.c_str());
      const auto [failure] = co_await link.stream.async_handshake(asio::ssl::stream_base::client, kAwait);
      if (failure) {
        auto words = fmt::format("[http] {}: TLS: {}", url_.authority(), failure.message());
        state->set_end(HttpEnd::kNoConnect, std::move(words));
      }
    }
  }

  // Asks the proxy to connect to the host (method CONNECT).
  Task ask_proxy(StatePtr state) {
    auto& link = *state->link;
    const auto place = fmt::format("{}:{}", url_.host, url_.port);
    const std::string message = fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\n", place, place);
    const auto bytes = asio::buffer(message);
    const auto [unsent, n_sent] = co_await asio::async_write(link.socket(), bytes, kAwait);
    http::response_parser<http::empty_body> parser;
    parser.header_limit(kMaxHead);
    parser.skip(true);  // no body follows: all bytes after the head come from the host
    const auto [unread, n_read] = co_await http::async_read_header(link.socket(), link.buffer, parser, kAwait);
    const auto& ec = unsent ? unsent : unread;
    if (ec || parser.get().result_int() / 100 != 2) {
      auto why = ec ? ec.message() : fmt::format("it answers {}", parser.get().result_int());
      auto words = fmt::format("[http] the proxy {}: {}: {}", proxy_->authority(), place, why);
      state->set_end(HttpEnd::kNoConnect, std::move(words));
    }
  }

  std::string head(const HttpCall& call) const {
    const auto target = proxy_ && !url_.is_tls ? "http://" + url_.authority() + call.target : call.target;
    std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", call.method, target, url_.authority());
    for (const auto& [name, value] : call.headers) out += fmt::format("{}: {}\r\n", name, value);
    if (!call.body.empty() || call.method != "GET") out += fmt::format("Content-Length: {}\r\n", call.body.size());
    return out += "\r\n";
  }

  Task exchange(StatePtr state, bool& keeps) {
    auto& link = *state->link;
    const std::string message = head(state->call) + state->call.body;
    const auto bytes = asio::buffer(message);
    // A server may answer and close before it has read the whole request. So the answer is read even if sending failed.
    const auto [unsent, n_sent] = co_await asio::async_write(link.stream, bytes, kAwait);
    http::response_parser<GrowingBody> parser;
    parser.header_limit(kMaxHead);
    parser.body_limit(boost::none);
    parser.eager(false);  // an eager parser delivers a chunk only when the size of the next one has arrived
    bool has_head = false;
    error_code ec;
    while (!ec && !parser.is_done() && state->end.kind == HttpEnd::kWhole) {
      const auto [read_error, n] = co_await http::async_read_some(link.stream, link.buffer, parser, kAwait);
      ec = read_error;
      if (state->end.kind != HttpEnd::kWhole) co_return;
      if (!has_head && parser.is_header_done()) {
        has_head = true;
        tell_head(*state, parser.get());
      }
      auto& body = parser.get().body();
      if (!body.empty() && state->events.on_body && !state->events.on_body(body)) state->hang_up();
      body.clear();
    }
    if (state->end.kind != HttpEnd::kWhole) co_return;
    if (ec || !parser.is_done()) {
      const auto& why = !has_head && unsent ? unsent : ec;
      state->set_end(HttpEnd::kIncomplete, fmt::format("[http] {}: the answer is cut off{}: {}", url_.authority(),
                                                       has_head ? "" : " before its head", why.message()));
      co_return;
    }
    keeps = parser.keep_alive() && !unsent && link.buffer.size() == 0;
  }

  static void tell_head(State& state, const http::response<GrowingBody>& message) {
    Headers headers;
    for (const auto& field : message) {
      headers.emplace_back(to_lower(std::string_view(field.name_string())), std::string(field.value()));
    }
    if (state.events.on_head) state.events.on_head(static_cast<int>(message.result_int()), headers);
  }

  const Url url_;
  const std::optional<Url> proxy_;
  asio::io_context io_{1};
  asio::executor_work_guard<Executor> guard_ = asio::make_work_guard(io_);
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  std::vector<Tcp::endpoint> endpoints_;
  std::vector<std::unique_ptr<LinkOf>> idle_;
  std::unordered_set<StatePtr> calls_;
  bool is_closing_ = false;
  std::thread thread_;
};

template <class Client>
Result<std::unique_ptr<HttpClient>> opened(const Url& url, const std::optional<Url>& proxy) {
  auto client = std::make_unique<Client>(url, proxy);
  ZRT_CHECK_OK(client->begin());
  return client;
}

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::open(const Url& url, const std::optional<Url>& proxy) {
  return url.is_tls ? opened<ClientOf<TlsStream>>(url, proxy) : opened<ClientOf<Socket>>(url, proxy);
}

std::string_view words_of_status(int status) {
  const auto known = status < 0 ? http::status::unknown : http::int_to_status(static_cast<unsigned>(status));
  return known == http::status::unknown ? std::string_view() : std::string_view(http::obsolete_reason(known));
}

Result<HttpAnswer> fetch(HttpClient& client, HttpCall call) {
  HttpAnswer answer;
  std::promise<HttpEnd> promise;
  HttpEvents events;
  events.on_head = [&](int status, const Headers& headers) {
    answer.status = status;
    answer.headers = headers;
  };
  events.on_body = [&](std::string_view piece) {
    answer.body += piece;
    return true;
  };
  events.on_end = [&](const HttpEnd& end) { promise.set_value(end); };
  client.start(std::move(call), std::move(events));
  const auto end = promise.get_future().get();
  if (end.kind != HttpEnd::kWhole) return fail(StatusCode::kUnavailable, "{}", end.error);
  return answer;
}

}  // namespace zinc_rt::client
