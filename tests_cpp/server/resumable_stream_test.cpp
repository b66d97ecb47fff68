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
      : client(std::make_shared<Client>(room)), stream(std::make_shared<ResumableStream>(shelf, "s", "alice", client)) {
    stream->start_stream({});
    stream->on_gone([this] { ++n_given_up; });
  }
  StreamShelf shelf;
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
  StreamShelf shelf;
  const auto client = std::make_shared<Client>();
  bool is_there = false;
  client->started = [&] { is_there = shelf.find("s", "alice") != nullptr; };
  std::make_shared<ResumableStream>(shelf, "s", "alice", client)->start_stream({});
  EXPECT_TRUE(is_there);
}

TEST(ResumableStream, GoesOnAloneAndThenGivesUp) {
  Streaming s;
  s.client->leave();
  EXPECT_TRUE(s.stream->write("data: a\n\n"));
  s.shelf.sweep(steady_clock::now() + seconds(29));
  EXPECT_EQ(s.n_given_up, 0);
  const auto back = std::make_shared<Client>();
  ASSERT_TRUE(s.stream->attach(back, 0));
  EXPECT_EQ(back->text, "id: 1\ndata: a\n\n");
  s.shelf.sweep(steady_clock::now() + seconds(3600));  // with a client it may take as long as it wants
  EXPECT_EQ(s.n_given_up, 0);
  back->leave();
  s.shelf.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.n_given_up, 1);
  s.shelf.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.n_given_up, 1);  // it is the job that ends it
  s.stream->finish("data: end\n\n");
  EXPECT_EQ(s.shelf.size(), 1u);
  s.shelf.sweep(steady_clock::now() + seconds(31));
  EXPECT_EQ(s.shelf.size(), 0u);
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

TEST(StreamShelf, ShowsAStreamToItsOwnerAlone) {
  Streaming s;
  EXPECT_EQ(s.shelf.find("s", "alice"), s.stream);
  EXPECT_EQ(s.shelf.find("s", "bob"), nullptr);
  EXPECT_EQ(s.shelf.find("t", "alice"), nullptr);
  s.stream->discard();
  EXPECT_EQ(s.n_given_up, 1);
}

}  // namespace
}  // namespace zinc_rt::server
