#include "server/resumable_stream.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace zinc_rt::server {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// A client that takes so many bytes.
class Client final : public Connection {
 public:
  explicit Client(std::size_t room = SIZE_MAX) : room_(room) {}
  void add_header(std::string, std::string) override {}
  void note(std::string, std::string) override {}
  void respond(HttpResponse) override {}
  void start_stream(HttpResponse) override {
    ++n_starts;
    if (started) started();
  }
  bool write(std::string_view piece) override {
    if (text.size() + piece.size() > room_) return false;
    text += piece;
    return true;
  }
  void finish(std::string_view last) override {
    text += last;
    is_finished = true;
  }
  void abort() override { is_aborted = true; }
  void on_gone(std::function<void()> left) override { left_ = std::move(left); }
  void leave() { std::exchange(left_, nullptr)(); }

  std::string text;
  int n_starts = 0;
  bool is_finished = false, is_aborted = false;
  std::function<void()> started;

 private:
  std::size_t room_;
  std::function<void()> left_;
};

struct Streaming {
  explicit Streaming(std::size_t room = SIZE_MAX)
      : client(std::make_shared<Client>(room)),
        stream(std::make_shared<ResumableStream>(registry, "s", "alice", client)) {
    stream->start_stream({});
    stream->on_gone([this] { ++n_given_up; });
  }
  StreamRegistry registry;
  std::shared_ptr<Client> client;
  std::shared_ptr<ResumableStream> stream;
  int n_given_up = 0;
};

TEST(ResumableStream, NumbersEachEventOfAPiece) {
  Streaming s;
  EXPECT_TRUE(s.stream->write("data: a\n\ndata: b\n\n"));
  s.stream->finish("data: c\n\n");
  EXPECT_EQ(s.client->text, "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n");
  EXPECT_TRUE(s.client->is_finished);
}

TEST(ResumableStream, IsThereBeforeItsClientHears) {
  StreamRegistry registry;
  const auto client = std::make_shared<Client>();
  bool is_there = false;
  client->started = [&] { is_there = registry.find("s", "alice").has_value(); };
  std::make_shared<ResumableStream>(registry, "s", "alice", client)->start_stream({});
  EXPECT_TRUE(is_there);
}

TEST(ResumableStream, GoesOnAloneAndThenGivesUp) {
  Streaming s;
  s.client->leave();
  EXPECT_TRUE(s.stream->write("data: a\n\n"));
  s.registry.sweep(steady_clock::now() + seconds(29));
  EXPECT_EQ(s.n_given_up, 0);
  const auto back = std::make_shared<Client>();
  ASSERT_TRUE(s.stream->attach(back, 0));
  EXPECT_EQ(back->text, "id: 1\ndata: a\n\n");
  s.registry.sweep(steady_clock::now() + seconds(3600));  // with a client it may take as long as it wants
  EXPECT_EQ(s.n_given_up, 0);
  back->leave();
  s.registry.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.n_given_up, 1);
  s.registry.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.n_given_up, 1);  // it is the job that ends it
  s.stream->finish("data: end\n\n");
  EXPECT_EQ(s.registry.size(), 1u);
  s.registry.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.registry.size(), 0u);
}

TEST(ResumableStream, TheFormerClientsLeavingIsNothingToTheNext) {
  Streaming s;
  const auto next = std::make_shared<Client>();
  ASSERT_TRUE(s.stream->attach(next, 0));
  EXPECT_TRUE(s.client->is_aborted);
  s.client->leave();
  EXPECT_TRUE(s.stream->write("data: a\n\n"));
  EXPECT_EQ(next->text, "id: 1\ndata: a\n\n");
}

TEST(ResumableStream, KeepsABoundedPart) {
  Streaming s;
  const std::string event = "data: " + std::string(10'000, 'x') + "\n\n";
  std::uint64_t n = 0;
  for (; n < 300; ++n) ASSERT_TRUE(s.stream->write(event));
  const auto behind = std::make_shared<Client>();
  const auto gone = s.stream->attach(behind, 0);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().status, 410);
  const auto ahead = s.stream->attach(behind, n + 1);
  ASSERT_FALSE(ahead);
  EXPECT_EQ(ahead.error().status, 400);
  ASSERT_TRUE(s.stream->attach(behind, n - 50));
  EXPECT_EQ(std::ranges::count(behind->text, ':'), 100);  // of fifty events, two lines each
  behind->leave();
  std::uint64_t n_alone = 0;
  while (s.stream->write(event)) ASSERT_LT(++n_alone, 300u);
  EXPECT_GT(n_alone * event.size(), ResumableStream::kMostKept - 2 * event.size());
  const auto back = std::make_shared<Client>();
  ASSERT_TRUE(s.stream->attach(back, n));
  EXPECT_TRUE(s.stream->write(event));
}

TEST(ResumableStream, ASlowReaderHoldsItUpAndGetsTheRestAtTheEnd) {
  Streaming s(100'000);
  const std::string event = "data: " + std::string(10'000, 'x') + "\n\n";
  int n = 0;
  while (s.stream->write(event)) ASSERT_LT(++n, 100);
  EXPECT_LT(static_cast<std::size_t>(n) * event.size(), 100'000 + ResumableStream::kMostUnsent + 2 * event.size());
  s.stream->finish("data: end\n\n");
  EXPECT_TRUE(s.client->text.ends_with("data: end\n\n"));
  EXPECT_EQ(std::ranges::count(s.client->text, ':'), 2 * (n + 1));
}

TEST(StreamRegistry, ShowsAStreamToItsOwnerAlone) {
  Streaming s;
  EXPECT_EQ(s.registry.find("s", "alice").value(), s.stream);
  EXPECT_EQ(s.registry.find("s", "bob").error().status, 404);
  EXPECT_EQ(s.registry.find("t", "alice").error().status, 404);
  s.stream->discard();
  EXPECT_EQ(s.n_given_up, 1);
}

const std::string kTenKilobytes = "data: " + std::string(10'000, 'x') + "\n\n";

// A stream of `owner` that had so many events of ten kilobytes, and, with `is_over`, has ended since.
std::shared_ptr<ResumableStream> streamed(StreamRegistry& registry, const std::string& id, const std::string& owner,
                                          int n_events, bool is_over = true) {
  const auto client = std::make_shared<Client>();
  auto stream = std::make_shared<ResumableStream>(registry, id, owner, client);
  stream->start_stream({});
  for (int i = 0; i < n_events; ++i) stream->write(kTenKilobytes);
  if (is_over) stream->finish("data: end\n\n");
  return stream;
}

int status_of(StreamRegistry& registry, const std::string& id, const std::string& owner) {
  const auto found = registry.find(id, owner);
  return found ? 200 : found.error().status;
}

TEST(StreamRegistry, TheOldestOfATenantThatEndedGoFirst) {
  StreamRegistry registry({10'000'000, 100'000});
  const auto running = streamed(registry, "0", "alice", 1, false);
  for (const char* id : {"1", "2", "3", "4"}) streamed(registry, id, "alice", 3);
  streamed(registry, "b", "bob", 5);
  EXPECT_EQ(status_of(registry, "0", "alice"), 200);  // it runs
  EXPECT_EQ(status_of(registry, "1", "alice"), 410);
  EXPECT_EQ(status_of(registry, "2", "alice"), 410);
  EXPECT_EQ(status_of(registry, "3", "alice"), 200);
  EXPECT_EQ(status_of(registry, "4", "alice"), 200);
  EXPECT_EQ(status_of(registry, "b", "bob"), 200);
  EXPECT_EQ(status_of(registry, "1", "bob"), 404);
  const auto said = registry.find("1", "alice").error().message;
  EXPECT_NE(said.find("of this tenant keep 100000 bytes"), std::string::npos) << said;
  registry.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(status_of(registry, "1", "alice"), 404);
}

TEST(StreamRegistry, InAllTheTenantWithTheMostGivesWay) {
  StreamRegistry registry({200'000, 150'000});
  for (const char* id : {"1", "2", "3"}) streamed(registry, id, "alice", 4);
  streamed(registry, "b", "bob", 2);
  EXPECT_EQ(status_of(registry, "1", "alice"), 200);
  streamed(registry, "c", "carol", 6);
  EXPECT_EQ(status_of(registry, "1", "alice"), 410);
  EXPECT_NE(registry.find("1", "alice").error().message.find("of all tenants keep 200000"), std::string::npos);
  for (const auto& [id, owner] : {std::pair{"2", "alice"}, {"3", "alice"}, {"b", "bob"}, {"c", "carol"}})
    EXPECT_EQ(status_of(registry, id, owner), 200) << id;
}

TEST(StreamRegistry, WhereAllRunTheyKeepWhatTheirClientsHaveNotGot) {
  StreamRegistry registry({10'000'000, 60'000});
  const auto client = std::make_shared<Client>();
  const auto stream = std::make_shared<ResumableStream>(registry, "s", "alice", client);
  stream->start_stream({});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(stream->write(kTenKilobytes));  // a client that reads is never held up
  const auto late = std::make_shared<Client>();
  EXPECT_EQ(stream->attach(late, 0).error().status, 410);
  EXPECT_TRUE(stream->attach(late, 28));
  late->leave();
  int n_alone = 0;
  while (stream->write(kTenKilobytes)) ASSERT_LT(++n_alone, 10);
  const auto back = std::make_shared<Client>();
  ASSERT_TRUE(stream->attach(back, 30));
  EXPECT_EQ(std::ranges::count(back->text, ':'), 2 * n_alone);
  EXPECT_TRUE(stream->write(kTenKilobytes));
}

}  // namespace
}  // namespace zinc_rt::server
