// SessionOf is one connection over TCP or TLS. It consists of a reader that fills `in_`, and a loop that takes requests
// from it and sends their answers. Both run on the strand, and check their conditions again after each wait.
// How a disconnect is detected: a TCP reset is noticed at once, in every phase. After an orderly close (FIN) the client
// may be gone. Over plain TCP it may also have closed only its sending half. So its requests are still answered, and
// Answer::probe() sends a few bytes to find out whether the client still reads.
// Thread rule: start, sweep, stop and quit from any thread; all other members on the strand.
#pragma once

#include <optional>

#include "server/http/answer.h"
#include "server/transport/request_parser.h"
#include "server/transport/sessions.h"

namespace zinc_rt::server {

// At most this many received bytes may wait to be parsed.
constexpr std::size_t kReadAhead = 64u << 10;

template <class Stream>
class SessionOf final : public Session, public std::enable_shared_from_this<SessionOf<Stream>> {
 public:
  template <class... Args>
  SessionOf(std::shared_ptr<Sessions> shared, std::shared_ptr<asio::io_context> io, std::string address, Socket socket,
            Args&... args)
      : shared_(std::move(shared)),
        io_(std::move(io)),
        address_(std::move(address)),
        executor_(socket.get_executor()),
        stream_(std::move(socket), args...),
        wake_(executor_),
        space_(executor_),
        in_held_(shared_->inputs, address_, {}) {}

  void start() override {
    asio::co_spawn(executor_, [self = this->shared_from_this()] { return self->run(); }, asio::detached);
  }
  void sweep(Clock::time_point now) override;
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

  // The following functions start, read from and end the connection. They are defined in session.cpp.
  Task run();
  void close();
  Task watch_for_reset();  // detects a reset even while the reader waits for room in `in_`
  Task read_all();         // reads until the client closes, so that a close is noticed at any time
  error_code read_what_is_there();
  Task say_goodbye();

  // The following functions take requests from `in_` and send their answers. They are defined in session_serve.cpp.
  TaskOf<bool> serve_one();  // returns false if the connection must be closed
  TaskOf<bool> serve(std::size_t head_size);
  Task refuse(HeadScan bad);  // answers a message that is not a valid request
  std::shared_ptr<Answer> make_answer(const Parser& parser, bool may_go_on);
  // Answers a request without reading its body. If the client is sending a short body, the body is read and discarded,
  // so that the connection can be used again.
  TaskOf<bool> answer_unread(const Parser& parser, HttpResponse response, std::size_t n_unread);
  // Returns the limit on the body's bytes.
  std::size_t limit_of(const HeadVerdict& verdict) const;
  // Reads the body. Sets `bad` to kBad with the answer if the body is refused. `owner` is HeadVerdict::owner_words.
  Task read_body(Parser& parser, std::size_t max_bytes, const std::string& owner, ByteBudget::Hold& held,
                 HeadScan& bad);
  HeadScan room_for(std::size_t n_bytes, const std::string& owner, ByteBudget::Hold& held) const;
  void begin_record();           // starts the record of a request for on_answered
  void tell(bool has_gone_out);  // calls on_answered; has_gone_out is false if the answer was not sent completely
  // Returns true if the answer was sent completely and another request may follow.
  TaskOf<bool> send(bool& has_gone_out);

  Task wait(Clock::time_point until = Clock::time_point::max()) {
    wake_.expires_at(until);
    co_await wake_.async_wait(kAwait);
  }
  void allow(double time_s) { deadline_ = Clock::now() + seconds(time_s); }
  void consume(std::size_t n) {
    in_.erase(0, n);
    hold_input();
    space_.cancel();
  }
  // Counts the received bytes in the budget of inputs if they exceed kFreeInput. Returns false if the budget has no
  // room for them.
  bool hold_input() {
    const std::size_t n = in_.size() > TransportOptions::kFreeInput ? in_.size() : 0;
    return in_held_.resize(n) == ByteBudget::Full::kNo;
  }

  const std::shared_ptr<Sessions> shared_;
  const std::shared_ptr<asio::io_context> io_;
  const std::string address_;
  Executor executor_;
  Stream stream_;
  Timer wake_, space_;  // the loop that serves requests waits on wake_; while `in_` is full, the reader waits on space_
  std::string in_;
  ByteBudget::Hold in_held_;
  std::shared_ptr<Answer> answer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::uint64_t n_requests_ = 0;
  std::string path_;  // the request's path, for refusals; empty until it is known
  AnsweredRequest record_;
  Clock::time_point begun_;
  // If the time limit of kRequest passes, the client gets an error; in other phases the connection is closed.
  enum class Phase : std::uint8_t { kIdle, kRequest, kAnswer, kLinger } phase_ = Phase::kIdle;
  bool is_eof_ = false, is_closed_ = false, is_late_ = false, is_quitting_ = false, is_discarding_ = false;
};

}  // namespace zinc_rt::server
