// What a connection does when its client stalls, resets, closes its sending side, or sends more than there is room for.
#include "server/transport/transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace zinc_rt::server {
namespace {

using namespace std::chrono_literals;

// A transport whose handler keeps the connections, and clients of it.
class Listening {
 public:
  explicit Listening(TransportOptions options = {}) {
    options.port = 0;
    transport = *Transport::listen(options, [this](const HttpRequest& head) {
      HeadVerdict verdict;
      if (head.header("authorization") == "wrong") {
        verdict.answer.emplace();
        verdict.answer->status = 401;
        return verdict;
      }
      verdict.owner = std::string(head.header("authorization"));
      verdict.handle = [this](HttpRequest request, std::shared_ptr<Connection> to) {
        to->on_gone([this] {
          const std::lock_guard lock(mutex);
          ++n_gone;
          changed.notify_all();
        });
        const std::lock_guard lock(mutex);
        requests.push_back(std::move(request));
        connections.push_back(std::move(to));
        changed.notify_all();
      };
      return verdict;
    });
  }

  // Waits, long enough that only a bug lets the time pass.
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [&] { return condition(); });
  }
  bool waits_for_requests(std::size_t n) {
    return wait([&] { return requests.size() >= n; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<HttpRequest> requests;
  std::vector<std::shared_ptr<Connection>> connections;
  int n_gone = 0;
  std::unique_ptr<Transport> transport;  // ends first
};

class Client {
 public:
  explicit Client(const Listening& to) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to.transport->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void close_sending() const { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger none{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close();
  }
  // Until `end` came, or the connection ends.
  std::string read(std::string_view end = {}) const {
    std::string out;
    char piece[4096];
    while (end.empty() || out.find(end) == std::string::npos) {
      pollfd look{fd_, POLLIN, 0};
      if (::poll(&look, 1, 60'000) != 1) return out + "(no more came in time)";
      const auto n = ::recv(fd_, piece, sizeof piece, 0);
      if (n <= 0) break;
      out.append(piece, static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  int fd_;
};

std::string post(std::size_t length, const std::string& key = "alice", const std::string& more = "") {
  return "POST /x HTTP/1.1\r\nHost: x\r\nAuthorization: " + key + "\r\n" + more +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}
HttpResponse events() {
  HttpResponse head;
  head.content_type = "text/event-stream";
  return head;
}

TEST(Transport, WhoHasNoKeyIsAnsweredBeforeABodyIsRead) {
  Listening server;
  const Client client(server);
  client.send(post(15'000'000, "wrong", "Expect: 100-continue\r\n"));
  const auto answer = client.read();  // to the end of the connection
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 401 ")) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_EQ(server.transport->counts().held_bytes, 0u);
}

TEST(Transport, AShortBodyThatIsNotWantedIsPassedOver) {
  Listening server;
  const Client client(server);
  client.send(post(5, "wrong") + "hello" + post(2) + "ok");
  EXPECT_TRUE(client.read("\r\n\r\n").starts_with("HTTP/1.1 401 "));
  ASSERT_TRUE(server.waits_for_requests(1));
  EXPECT_EQ(server.requests[0].body, "ok");
}

TEST(Transport, BodiesOfAnOwnerAreBounded) {
  TransportOptions options;
  options.bodies = {1000, 1000, 100};
  Listening server(options);
  const Client first(server), second(server), other(server);
  first.send(post(90) + std::string(90, 'x'));
  ASSERT_TRUE(server.waits_for_requests(1));  // and it is not handled yet
  EXPECT_EQ(server.transport->counts().held_bytes, 90u);
  second.send(post(90) + std::string(90, 'x'));
  const auto refused = second.read();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ")) << refused;
  EXPECT_NE(refused.find("Retry-After: 1"), std::string::npos);
  EXPECT_NE(refused.find("more than 100 bytes"), std::string::npos);
  other.send(post(90, "bob") + std::string(90, 'x'));
  ASSERT_TRUE(server.waits_for_requests(2));
  server.requests.clear();
  EXPECT_EQ(server.transport->counts().held_bytes, 0u);
}

TEST(Transport, BodiesAreBoundedInAllAndByAddress) {
  for (const bool in_all : {true, false}) {
    TransportOptions options;
    options.bodies = {in_all ? 100u : 1000u, in_all ? 1000u : 100u, 1000};
    Listening server(options);
    const Client first(server), second(server);
    first.send(post(90) + std::string(90, 'x'));
    ASSERT_TRUE(server.waits_for_requests(1));
    second.send(post(90, "bob") + std::string(90, 'x'));
    const auto refused = second.read();
    EXPECT_TRUE(refused.starts_with(in_all ? "HTTP/1.1 503 " : "HTTP/1.1 429 ")) << refused;
  }
}

TEST(Transport, ALengthThatIsOnlyClaimedTakesNoRoom) {
  TransportOptions options;
  options.bodies = {100, 100, 100};
  Listening server(options);
  const Client claimer(server), sender(server);
  claimer.send(post(16'000'000) + "x");
  sender.send(post(90) + std::string(90, 'x'));
  EXPECT_TRUE(server.waits_for_requests(1));
}

TEST(Transport, WhoStallsIsToldSo) {
  TransportOptions options;
  options.body_stall_timeout_s = options.head_timeout_s = 0.1;
  Listening server(options);
  const Client body(server), head(server), trickle(server);
  body.send(post(10) + "x");
  head.send("POST /x HTTP/1.1\r\nHost:");
  for (const Client* client : {&body, &head}) {
    const auto answer = client->read();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  }
  EXPECT_TRUE(trickle.read().empty());  // nothing was begun, so nothing is said
  EXPECT_EQ(server.transport->counts().timed_out, 3u);
}

// The ways in which a client can end its connection while its answer is made.
// So that an error has the form of the API that its path is of.
TEST(Transport, ARefusalKnowsThePathAsSoonAsItsLineIsThere) {
  TransportOptions options;
  options.head_timeout_s = options.body_timeout_s = options.body_stall_timeout_s = 0.05;
  options.max_body_bytes = 10;
  options.max_head_bytes = 2000;
  options.refusal = [](int status, const std::string& path, const std::string&) {
    HttpResponse response;
    response.status = status;
    response.body = "<" + path + ">";
    return response;
  };
  Listening server(options);
  const std::string line = "POST /v1/me%73sages?beta=true HTTP/1.1\r\n", host = line + "Host: a\r\n";
  for (const auto& [status, sent] : {std::pair(408, host + "X-Slow: "),
                                     {408, host + "Content-Length: 5\r\n\r\n{"},
                                     {408, line},
                                     {413, host + "Content-Length: 11\r\n\r\n"},
                                     {431, host + "X-Long: " + std::string(3000, 'a')},
                                     {400, line + "\r\n"},
                                     {400, host + "no header\r\n\r\n"},
                                     {400, host + "Content-Length: x\r\n\r\n"},
                                     {400, "POST http://b/v1/messages HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"}}) {
    const Client client(server);
    client.send(sent);
    const auto answer = client.read(">");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(status))) << sent << "\n" << answer;
    EXPECT_TRUE(answer.ends_with("</v1/messages>")) << sent << "\n" << answer;
  }
  const Client client(server);
  client.send("POST /v1/mess");
  EXPECT_TRUE(client.read(">").ends_with("<>"));  // no path yet
  // Whoever drops a request unanswered.
  const Client dropped(server);
  dropped.send("GET /v1/messages HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.waits_for_requests(1));
  {
    const std::lock_guard lock(server.mutex);
    server.connections.clear();
  }
  EXPECT_TRUE(dropped.read(">").ends_with("</v1/messages>"));
}

TEST(Transport, AResetIsSeenInEveryPhase) {
  Listening server;
  int n = 0;
  const auto gone = [&] {
    ++n;
    return server.wait([&] { return server.n_gone >= n; });
  };
  {  // before the answer has begun
    Client client(server);
    client.send(post(0));
    ASSERT_TRUE(server.waits_for_requests(1));
    client.reset();
    EXPECT_TRUE(gone());
  }
  {  // while the reader has no room for what it sends behind its request
    Client client(server);
    client.send(post(0) + std::string(1 << 20, 'x'));
    ASSERT_TRUE(server.waits_for_requests(2));
    client.reset();
    EXPECT_TRUE(gone());
  }
  {  // in a stream
    Client client(server);
    client.send(post(0));
    ASSERT_TRUE(server.waits_for_requests(3));
    server.connections[2]->start_stream(events());
    EXPECT_TRUE(server.connections[2]->write("data: 1\n\n"));
    client.read("data: 1");
    client.reset();
    EXPECT_TRUE(gone());
  }
  {  // while it is written to, and does not read
    Client client(server);
    client.send(post(0));
    ASSERT_TRUE(server.waits_for_requests(4));
    server.connections[3]->start_stream(events());
    const std::string event = "data: " + std::string(100'000, 'y') + "\n\n";
    for (int i = 0; i < 200; ++i) {
      server.connections[3]->write(event);
      std::this_thread::sleep_for(1ms);
    }
    client.reset();
    EXPECT_TRUE(gone());
  }
}

TEST(Transport, AClientThatClosedAllOfItIsGone) {
  Listening server;
  for (const bool is_stream : {true, false}) {
    const std::size_t n = server.requests.size();
    const int before = server.n_gone;
    Client client(server);
    client.send(post(0));
    ASSERT_TRUE(server.waits_for_requests(n + 1));
    if (is_stream) server.connections[n]->start_stream(events());
    if (is_stream) client.read("\r\n\r\n");
    client.close();  // an orderly end: only something that is sent shows that nobody reads
    EXPECT_TRUE(server.wait([&] { return server.n_gone > before; }));
  }
}

TEST(Transport, AClientThatClosedItsSendingSideGetsItsAnswer) {
  Listening server;
  for (const bool is_stream : {true, false}) {
    const std::size_t n = server.requests.size();
    const Client client(server);
    client.send(post(0));
    ASSERT_TRUE(server.waits_for_requests(n + 1));
    if (is_stream) server.connections[n]->start_stream(events());
    client.close_sending();
    std::this_thread::sleep_for(600ms);  // past the moment at which it is probed
    if (is_stream) {
      EXPECT_TRUE(server.connections[n]->write("data: 1\n\n"));
      server.connections[n]->finish("data: [DONE]\n\n");
    } else {
      HttpResponse whole;
      whole.body = "{}[DONE]";
      server.connections[n]->respond(whole);
    }
    const auto answer = client.read();
    EXPECT_NE(answer.find("HTTP/1.1 200 OK"), std::string::npos) << answer;
    EXPECT_NE(answer.find("[DONE]"), std::string::npos) << answer;
  }
  EXPECT_EQ(server.n_gone, 0);
}

TEST(Transport, ListensWhereOthersReachItOnlyWhenToldSo) {
  TransportOptions options;
  options.port = 0;
  options.why_loopback_only = "where nobody is asked for a key";
  const auto handler = [](const HttpRequest&) { return HeadVerdict{}; };
  for (const char* host : {"0.0.0.0", "::"}) {
    options.host = host;
    const auto refused = Transport::listen(options, handler);
    ASSERT_FALSE(refused.has_value()) << host;
    EXPECT_EQ(refused.error().code, StatusCode::kInvalidArgument);
    EXPECT_NE(refused.error().message.find(options.why_loopback_only), std::string::npos);
  }
  options.host = "127.0.0.1";
  EXPECT_TRUE(Transport::listen(options, handler).has_value());
}

}  // namespace
}  // namespace zinc_rt::server
