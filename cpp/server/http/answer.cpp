#include "server/http/answer.h"

#include <fmt/format.h>

#include <ctime>

namespace zinc_rt::server {
namespace {

constexpr std::string_view kHeartbeat = ": heartbeat\n\n";
// probe() sends this interim response. Clients ignore any number of interim responses before the final response (RFC
// 9110, section 15.2).
constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

void put_note(Headers& notes, std::string name, std::string value) {
  for (auto& [known, old] : notes)
    if (known == name) {
      old = std::move(value);
      return;
    }
  notes.emplace_back(std::move(name), std::move(value));
}

}  // namespace

Answer::Answer(const AnswerOptions& options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      keep_alive_(options.keep_alive),
      last_write_(std::chrono::steady_clock::now()) {}

void Answer::put_head(const HttpResponse& r, bool has_length) {
  if (!has_length && options_.is_http_1_0) keep_alive_ = false;
  status_ = r.status;
  auto out = std::back_inserter(out_);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", r.status, reason_phrase(r.status), http_date());
  if (!r.content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", r.content_type);
  if (!has_length && !options_.is_http_1_0) fmt::format_to(out, "Transfer-Encoding: chunked\r\n");
  // A 304 has no body, so it gets no Content-Length; the header would describe the body that is not sent.
  else if (has_length && r.status != 304)
    fmt::format_to(out, "Content-Length: {}\r\n", r.body.size());
  for (const auto& [name, value] : headers_) fmt::format_to(out, "{}: {}\r\n", name, value);
  for (const auto& [name, value] : r.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  fmt::format_to(out, "Connection: {}\r\n\r\n", keep_alive_ ? "keep-alive" : "close");
}

void Answer::add_header(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  headers_.emplace_back(std::move(name), std::move(value));
}

void Answer::note(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  put_note(notes_, std::move(name), std::move(value));
}

void Answer::put_piece(std::string_view piece) {
  if (options_.is_http_1_0)
    out_.append(piece);
  else
    fmt::format_to(std::back_inserter(out_), "{:x}\r\n{}\r\n", piece.size(), piece);
}

void Answer::respond(HttpResponse response) {
  {
    const std::lock_guard lock(mutex_);
    if (is_started_) return;
    is_started_ = is_over_ = is_whole_ = true;
    put_head(response, true);
    if (!options_.is_head) out_ += response.body;
    left_ = nullptr;
  }
  wake_();
}

void Answer::start_stream(HttpResponse head) {
  {
    const std::lock_guard lock(mutex_);
    if (is_started_) return;
    is_started_ = is_stream_ = true;
    is_over_ = is_whole_ = options_.is_head;
    has_events_ = head.content_type.starts_with("text/event-stream");
    put_head(head, false);
    last_write_ = std::chrono::steady_clock::now();
  }
  wake_();
}

bool Answer::write(std::string_view piece) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_started_) return false;
    if (!is_stream_ || is_over_ || is_gone_ || piece.empty()) return true;
    // If no bytes wait, even a piece larger than the limit is accepted.
    if (!out_.empty() && out_.size() + piece.size() > options_.max_unsent_bytes) return false;
    put_piece(piece);
    last_write_ = std::chrono::steady_clock::now();
  }
  wake_();
  return true;
}

void Answer::close_stream(std::string_view last, bool is_whole) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_stream_ || is_over_) return;
    is_over_ = true;
    is_whole_ = is_whole;
    if (!last.empty()) put_piece(last);
    if (is_whole && !options_.is_http_1_0) out_ += "0\r\n\r\n";
    if (!is_whole) keep_alive_ = false;
    left_ = nullptr;
  }
  wake_();
}

void Answer::finish(std::string_view last) {
  close_stream(last, true);
}
void Answer::abort() {
  close_stream({}, false);
}

void Answer::on_gone(std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    if (!is_gone_) {
      left_ = std::move(left);
      return;
    }
  }
  left();
}

Answer::Taken Answer::take() {
  const std::lock_guard lock(mutex_);
  Taken taken;
  taken.bytes.swap(out_);
  taken.is_over = is_over_;
  taken.keep_alive = keep_alive_;
  return taken;
}

void Answer::set_gone() {
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    left.swap(left_);
  }
  if (left) left();
}

void Answer::describe(AnsweredRequest& request) {
  const std::lock_guard lock(mutex_);
  request.status = status_;
  request.is_whole = is_whole_;
  for (const auto& [name, value] : notes_) put_note(request.notes, name, value);
}

bool Answer::probe() {
  const std::lock_guard lock(mutex_);
  if (is_over_) return true;  // sending the answer's last bytes probes the connection too
  if (is_started_ ? !has_events_ : options_.is_http_1_0) return false;
  if (is_started_)
    put_piece(kHeartbeat);
  else
    out_ += kInterim;
  return true;
}

void Answer::drop() {
  bool is_started = false;
  {
    const std::lock_guard lock(mutex_);
    is_started = is_started_;
  }
  if (is_started) return abort();
  respond(options_.refusal(500, options_.path, "the request was dropped without an answer"));
}

void Answer::beat(std::chrono::steady_clock::time_point before) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_events_ || is_over_ || is_gone_ || !out_.empty() || last_write_ > before) return;
    put_piece(kHeartbeat);
    last_write_ = std::chrono::steady_clock::now();
  }
  wake_();
}

}  // namespace zinc_rt::server
