// The answer that is being sent to a client: handlers add bytes on any thread, and the I/O thread takes them out.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "server/transport/http.h"

namespace zinc_rt::server {

struct AnswerOptions {
  MakeRefusal refusal = plain_refusal;  // for a request that its handler drops without an answer
  std::string path = {};                // of the request
  std::size_t max_unsent_bytes = 0;
  bool is_head = false;      // the request was HEAD: no body
  bool keep_alive = false;   // what the client wants
  bool is_http_1_0 = false;  // no chunked coding: the end of the connection is the end of the body
};

class Answer final : public Connection {
 public:
  // `wake` tells the I/O thread that there are bytes to take. It is called without holding a lock.
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
    bool is_over = false;     // nothing follows
    bool keep_alive = false;  // with is_over: another request may come
  };
  Taken take();
  // The client has left. Has no effect if the answer was complete.
  void set_gone();
  // Fills in the status, the notes, and whether the answer was completed.
  void describe(AnsweredRequest& request);
  // Adds something that clients ignore, so that the network shows whether the client is still there: a heartbeat in an
  // event stream, or an interim response before the answer. Returns false if nothing can be added at this point.
  bool probe();
  // Called when no handler will add more. An answer that has not begun becomes an error; a stream is aborted.
  void drop();
  // Adds a heartbeat if this is a stream without activity since `before`.
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
