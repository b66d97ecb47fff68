#include "server/access_log.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <nlohmann/json.hpp>

#include "base/options.h"
#include "base/steady_ms.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMostWaiting = 8192;
constexpr std::array<std::string_view, 5> kProbes{"/livez", "/readyz", "/health", "/v1/health", "/ping"};

std::string utc(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const auto s = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&s, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, ms % 1000);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string word(const std::string& text) {
  if (text.empty()) return "-";
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F' && c != '"' && c != '\\' && c != '='; });
  return is_plain ? text : quoted(text);
}

// Returns the status for the log. If the client disconnected before a status was sent, that is 499, as in nginx's logs.
int status_of(const AnsweredRequest& r) {
  return r.status == 0 ? 499 : r.status;
}

bool is_count(std::string_view name) {
  return name.ends_with("_tokens");
}

}  // namespace

// Writes lines to stderr, but only when it accepts data. So a reader that has stopped reading cannot block the end of
// the process. After end_soon() waiting lines are dropped within a second.
class AccessLog::Stderr final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void end_soon() { end_ms_ = steady_ms() + 1000; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line(message.payload.data(), message.payload.size());
    line += '\n';
    for (std::size_t at = 0; at < line.size();) {
      const bool is_late = end_ms_ != 0 && steady_ms() > end_ms_;
      pollfd look{STDERR_FILENO, POLLOUT, 0};
      const int n = ::poll(&look, 1, is_late ? 0 : 100);
      if (n == 0 && is_late) return;
      if (n <= 0) continue;
      // A pipe that is ready accepts this many bytes without blocking.
      const auto written = ::write(STDERR_FILENO, line.data() + at, std::min<std::size_t>(PIPE_BUF, line.size() - at));
      if (written < 0 && errno != EINTR && errno != EAGAIN) return;
      if (written > 0) at += static_cast<std::size_t>(written);
    }
  }
  void flush_() override {}

 private:
  std::atomic<std::int64_t> end_ms_{0};
};

std::optional<AccessLogOf> access_log_of(std::string_view name) {
  if (name == "off") return AccessLogOf::kNothing;
  if (name == "on") return AccessLogOf::kRequests;
  if (name == "all") return AccessLogOf::kAll;
  return std::nullopt;
}

std::string access_line(const AnsweredRequest& r, std::chrono::system_clock::time_point time, bool is_json) {
  const auto tenant = std::ranges::find(r.notes, "tenant", &Headers::value_type::first);
  const std::string name = tenant == r.notes.end() ? "" : tenant->second;
  std::string line;
  if (is_json)
    line = fmt::format(
        R"({{"time":"{}","level":"access","address":{},"tenant":{},"method":{},"path":{},"status":{},"bytes":{},)"
        R"("ms":{:.1f},"complete":{})",
        utc(time), quoted(r.address), name.empty() ? "null" : quoted(name), quoted(r.method), quoted(r.path),
        status_of(r), r.bytes, r.time_ms, r.is_whole);
  else
    line = fmt::format("{} {} {} {} {} {} {} bytes {:.1f} ms{}", utc(time), word(r.address), word(name), word(r.method),
                       word(r.path), status_of(r), r.bytes, r.time_ms, r.is_whole ? "" : " complete=false");
  for (const auto& [key, value] : r.notes) {
    if (key == "tenant") continue;
    if (is_json)
      line += fmt::format(R"(,"{}":{})", key, is_count(key) ? value : quoted(value));
    else
      line += fmt::format(" {}={}", key, word(value));
  }
  if (is_json) line += '}';
  return line;
}

std::string header_of_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ", ";
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      const bool is_plain = (byte < 0x80 && std::isalnum(byte) != 0) || std::string_view("_.-[]").contains(c);
      if (is_plain)
        out += c;
      else
        out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

AccessLog::AccessLog(AccessLogOf what) : what_(what), is_json_(options::get("ZINC_RT_LOG_FORMAT") == "json") {
  if (what == AccessLogOf::kNothing) return;
  stderr_ = std::make_shared<Stderr>();
  pool_ = std::make_shared<spdlog::details::thread_pool>(kMostWaiting, 1);
  lines_ =
      std::make_shared<spdlog::async_logger>("access", stderr_, pool_, spdlog::async_overflow_policy::overrun_oldest);
}

AccessLog::~AccessLog() {
  if (!pool_) return;
  if (const auto n_lost = pool_->overrun_counter(); n_lost > 0) {
    const auto now = utc(std::chrono::system_clock::now());
    lines_->info(is_json_ ? fmt::format(R"({{"time":"{}","level":"access","lost_lines":{}}})", now, n_lost)
                          : fmt::format("{} lost_lines={}", now, n_lost));
  }
  stderr_->end_soon();
}

void AccessLog::write(const AnsweredRequest& request) {
  if (!lines_) return;
  const bool is_probe = request.status == 200 && std::ranges::find(kProbes, request.path) != kProbes.end();
  if (is_probe && what_ != AccessLogOf::kAll) return;
  lines_->log(spdlog::level::info,
              spdlog::string_view_t(access_line(request, std::chrono::system_clock::now(), is_json_)));
}

}  // namespace zinc_rt::server
