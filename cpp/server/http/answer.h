// Answer holds the answer that is being sent to a client. Handlers append bytes on any thread; the I/O thread removes
// and sends them. Thread rule: any thread.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "server/http/http.h"

namespace zinc_rt::server {

struct AnswerOptions {
  // Makes the answer to a request whose handler releases the Connection without an answer.
  MakeRefusal refusal = plain_refusal;
  std::string path = {};  // the request's path
  std::size_t max_unsent_bytes = 0;
  bool is_head = false;      // the method is HEAD: send no body
  bool keep_alive = false;   // the client wants to keep the connection open
  bool is_http_1_0 = false;  // no chunked coding: closing the connection ends the body
};

class Answer final : public Connection {
 public:
  // `wake` makes the I/O thread take the bytes that were appended. It is called while no lock is held.
  Answer(const AnswerOptions& options, std::function<void()> wake);
  ~Answer() override = default;

  void add_header(std::string name, std::string value) override;
  void note(std::string name, std::string value) override;
  void respond(HttpResponse response) override;
  void start_stream(HttpResponse head) override;
  bool write(std::string_view piece) override;
  void finish(std::string_view last) override;
  void abort() override;
  void on_gone(std::function<void()> left) override;

  // The members below are for the I/O thread.
  struct Taken {
    std::string bytes;
    bool is_over = false;     // these are the answer's last bytes
    bool keep_alive = false;  // with is_over: the connection may take another request
  };
  Taken take();
  // Called when the client has disconnected. Has no effect if the answer is complete.
  void set_gone();
  // Fills in the status, the notes, and whether the answer was completed.
  void describe(AnsweredRequest& request);
  // Adds bytes that clients ignore, so that the network reports whether the client is still connected: a heartbeat
  // comment in an event stream, or an interim response (1xx) before the answer. Returns false if nothing can be added
  // now.
  bool probe();
  // Called when no handler will add more. An answer that has not begun becomes an error; a stream is aborted.
  void drop();
  // Adds a heartbeat comment if this is an event stream to which nothing was added since `before`.
  void beat(std::chrono::steady_clock::time_point before);

 private:
  void put_head(const HttpResponse& response, bool has_length);
  void put_piece(std::string_view piece);
  void close_stream(std::string_view last, bool is_whole);

  const AnswerOptions options_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::string out_;
  Headers headers_, notes_;
  int status_ = 0;  // 0: the answer has not begun
  std::function<void()> left_;
  bool is_started_ = false, is_stream_ = false, is_over_ = false, has_events_ = false;
  bool is_gone_ = false, is_whole_ = false;
  bool keep_alive_;
  std::chrono::steady_clock::time_point last_write_;
};

}  // namespace zinc_rt::server
