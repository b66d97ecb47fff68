// Implements the functions of SessionOf that take a connection's requests and send their answers.
#include <fmt/format.h>

#include <algorithm>

#include "server/transport/session_of.h"

namespace zinc_rt::server {
namespace {

constexpr auto kProbeDelay =
    // If the client has closed its sending side and no answer has begun, a probe is sent after this time.
    std::chrono::milliseconds(250);

}  // namespace

template <class Stream>
Task SessionOf<Stream>::refuse(HeadScan bad) {
  if (bad.status != 408) ++shared_->bad_requests;
  const auto answer = answer_ = std::make_shared<Answer>(AnswerOptions{}, [] {});
  answer->note("error", "[http] " + bad.complaint);
  answer->respond(shared_->options.refusal(bad.status, path_, "[http] " + bad.complaint));
  phase_ = Phase::kAnswer;
  allow(shared_->options.write_timeout_s);
  const auto bytes = answer->take().bytes;
  const auto buffer = asio::buffer(bytes);
  auto [ec, n] = co_await asio::async_write(stream_, buffer, kAwait);
  record_.bytes += n;
  tell(!ec);
  answer_ = nullptr;
}

template <class Stream>
void SessionOf<Stream>::begin_record() {
  record_ = {};
  record_.address = address_;
  begun_ = Clock::now();
}

template <class Stream>
void SessionOf<Stream>::tell(bool has_gone_out) {
  if (!shared_->options.on_answered) return;
  if (answer_) answer_->describe(record_);
  record_.is_whole = record_.is_whole && has_gone_out;
  record_.time_ms = std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
  shared_->options.on_answered(record_);
}

template <class Stream>
TaskOf<bool> SessionOf<Stream>::serve_one() {
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
      begin_record();
      phase_ = Phase::kRequest;
      allow(o.head_timeout_s);
    }
    // New bytes without a line feed cannot complete a head, so they need no scan. The first bytes are scanned in any
    // case, because they may belong to another protocol.
    const bool is_new = in_.size() > n_scanned && (n_scanned == 0 || in_.find('\n', n_scanned) != std::string::npos ||
                                                   in_.size() > o.max_head_bytes);
    n_scanned = in_.size();
    if (is_new) scan = scan_head(in_, o.max_head_bytes);
    if (scan.state == HeadScan::kWhole) break;
    if (scan.state == HeadScan::kMore && is_late_)
      scan = complaint(fmt::format("the head of the request did not end within {:g} s", o.head_timeout_s), 408);
    if (scan.state == HeadScan::kBad || is_eof_) path_ = path_of_head(in_);
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

template <class Stream>
TaskOf<bool> SessionOf<Stream>::serve(std::size_t head_size) {
  Parser parser;
  HttpRequest request;
  path_ = path_of_head(in_);
  HeadScan bad = read_head(std::string_view(in_).substr(0, head_size), shared_->options, parser, request);
  consume(head_size);
  request.address = address_;
  if (bad.state == HeadScan::kBad) {
    co_await refuse(bad);
    co_return false;
  }
  record_.method = request.method;
  record_.path = path_ = request.path;
  ++n_requests_;
  ++shared_->requests;
  HeadVerdict verdict = shared_->handler(request);
  record_.notes = std::move(verdict.notes);
  const bool has_body = !parser.is_done();
  if (verdict.answer) {
    const std::size_t n_unread = has_body ? parser.content_length().value_or(UINT64_MAX) : 0;
    co_return co_await answer_unread(parser, std::move(*verdict.answer), n_unread);
  }
  request.held = ByteBudget::Hold(shared_->bodies, address_, std::move(verdict.owner));
  if (has_body) {
    co_await read_body(parser, limit_of(verdict), verdict.owner_words, request.held, bad);
    if (is_closed_) {
      tell(false);
      co_return false;
    }
    if (bad.state == HeadScan::kBad) {
      co_await refuse(bad);
      co_return false;
    }
  }
  request.body = std::move(parser.get().body());
  answer_ = make_answer(parser, true);
  phase_ = Phase::kAnswer;
  deadline_ = Clock::time_point::max();
  // Answer::drop() is called when the handler, and all to whom it passed the connection, have released it.
  verdict.handle(std::move(request),
                 std::shared_ptr<Connection>(answer_.get(), [answer = answer_](Connection*) { answer->drop(); }));
  verdict.handle = nullptr;
  bool has_gone_out = false;
  const bool goes_on = co_await send(has_gone_out);
  tell(has_gone_out);
  answer_->set_gone();  // does nothing if the whole answer was sent
  answer_ = nullptr;
  co_return goes_on;
}

template <class Stream>
std::shared_ptr<Answer> SessionOf<Stream>::make_answer(const Parser& parser, bool may_go_on) {
  const auto& message = parser.get();
  AnswerOptions options;
  options.refusal = shared_->options.refusal;
  options.path = path_;
  options.max_unsent_bytes = shared_->options.max_unsent_bytes;
  options.is_head = message.method() == http::verb::head;
  options.keep_alive = may_go_on && message.keep_alive() && !is_quitting_ && !shared_->is_draining;
  options.is_http_1_0 = message.version() == 10;
  // `io` is captured first, because the lambda may be the last owner of the io_context, which must outlive the
  // executor.
  return std::make_shared<Answer>(options, [io = io_, weak = this->weak_from_this(), executor = executor_] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake_.cancel();
    });
  });
}

template <class Stream>
TaskOf<bool> SessionOf<Stream>::answer_unread(const Parser& parser, HttpResponse response, std::size_t n_unread) {
  const bool is_passed_over = n_unread <= kReadAhead && !(n_unread > 0 && expects(parser));
  answer_ = make_answer(parser, is_passed_over);
  answer_->respond(std::move(response));
  phase_ = Phase::kAnswer;
  bool has_gone_out = false;
  bool goes_on = co_await send(has_gone_out);
  tell(has_gone_out);
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

template <class Stream>
HeadScan SessionOf<Stream>::room_for(std::size_t n_bytes, const std::string& owner, ByteBudget::Hold& held) const {
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
      return complaint(fmt::format("the bodies under way of {} would have more than {} bytes", owner, most.per_owner),
                       429);
  }
  return {};
}

template <class Stream>
std::size_t SessionOf<Stream>::limit_of(const HeadVerdict& verdict) const {
  const std::size_t most = shared_->options.max_body_bytes;
  if (verdict.max_body_bytes <= most) return most;
  // A body that could never fit the budget is refused first, because the statuses below tell the client to retry.
  const auto& budget = shared_->bodies->limits();
  return std::max(most, std::min({verdict.max_body_bytes, budget.in_all, budget.per_address, budget.per_owner}));
}

template <class Stream>
Task SessionOf<Stream>::read_body(Parser& parser, std::size_t max_bytes, const std::string& owner,
                                  ByteBudget::Hold& held, HeadScan& bad) {
  const TransportOptions& o = shared_->options;
  if (parser.content_length().value_or(0) > max_bytes) {
    bad = too_large(max_bytes);
    co_return;
  }
  parser.body_limit(max_bytes);
  phase_ = Phase::kRequest;
  const double size = static_cast<double>(max_bytes) / static_cast<double>(std::max<std::size_t>(1, o.max_body_bytes));
  const double timeout_s = o.body_timeout_s * std::max(1.0, size);
  const auto last = Clock::now() + seconds(timeout_s);
  const auto came = [&] { deadline_ = std::min(last, Clock::now() + seconds(o.body_stall_timeout_s)); };
  came();
  if (expects(parser)) {
    static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto buffer = asio::buffer(kGoOn);
    co_await asio::async_write(stream_, buffer, kAwait);
  }
  while (!parser.is_done() && !is_closed_) {
    if (is_late_) {
      bad = complaint(fmt::format("the body did not end within {:g} s, or had no byte for {:g} s", timeout_s,
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
      // No chunk header is as long as this, so the chunk is malformed.
      if (!ec && n == 0 && in_.size() >= kReadAhead) ec = http::error::bad_chunk;
      if (ec) bad = complaint_of(ec, max_bytes);
      if (!ec) bad = room_for(parser.get().body().size(), owner, held);
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

template <class Stream>
TaskOf<bool> SessionOf<Stream>::send(bool& has_gone_out) {
  bool has_sent = false;
  // Time of the probe; set when the client has closed its sending side; max() after the probe.
  std::optional<Clock::time_point> probe_at;
  for (;;) {
    if (is_closed_) co_return false;
    auto taken = answer_->take();
    if (!taken.bytes.empty()) {
      allow(shared_->options.write_timeout_s);
      const auto buffer = asio::buffer(taken.bytes);
      auto [ec, n] = co_await asio::async_write(stream_, buffer, kAwait);
      deadline_ = Clock::time_point::max();
      record_.bytes += n;
      if (ec) co_return false;
      has_sent = true;
    }
    has_gone_out = taken.is_over;
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

template TaskOf<bool> SessionOf<Socket>::serve_one();
template TaskOf<bool> SessionOf<TlsStream>::serve_one();

}  // namespace zinc_rt::server
