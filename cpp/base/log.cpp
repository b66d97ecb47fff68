#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/options.h"
#include "base/print.h"

namespace zinc_rt {
namespace {

// Escapes control characters in a message, so that each message is one line. A message may contain a client's text, and
// no such text may look like another log line.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    auto to = fmt::appender(out);
    for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)
        *to++ = c;
      else if (c == '\n')
        to = fmt::format_to(to, "\\n");
      else
        to = fmt::format_to(to, "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<OneLine>(); }
};

// Writes each message as one JSON object per line: {"time", "level", "message"}.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(message.time.time_since_epoch()).count();
    const auto time = static_cast<std::time_t>(us / 1000000);
    std::tm utc{};
    gmtime_r(&time, &utc);
    char when[32];
    std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    const auto level = spdlog::level::to_string_view(message.level);
    auto to = fmt::appender(out);
    fmt::format_to(to, R"({{"time":"{}.{:06}Z","level":"{}","message":")", when, us % 1000000,
                   std::string_view(level.data(), level.size()));
    std::string text;
    append_escaped(text, {message.payload.data(), message.payload.size()});
    fmt::format_to(to, "{}\"}}\n", text);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// Terminal codes that colour the levels from trace to critical. kPlain ends a colour.
constexpr std::string_view kColours[] = {"\x1b[37m",        "\x1b[36m",        "\x1b[32m",
                                         "\x1b[33m\x1b[1m", "\x1b[31m\x1b[1m", "\x1b[1m\x1b[41m"};
constexpr std::string_view kPlain = "\x1b[0m";

bool shows_colours() {
  const char* name = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && name != nullptr && std::string_view(name) != "dumb";
}

class Stderr final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    const auto level = static_cast<std::size_t>(message.level);
    if (has_colours_ && message.color_range_end > message.color_range_start && level < std::size(kColours)) {
      line.insert(message.color_range_end, kPlain);
      line.insert(message.color_range_start, kColours[level]);
    }
    write_err(line);
  }
  void flush_() override {}

 private:
  bool has_colours_ = shows_colours();
};

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    const bool is_json = options::get("ZINC_RT_LOG_FORMAT") == "json";
    auto made = std::make_shared<spdlog::logger>("zinc_rt", std::make_shared<Stderr>());
    made->set_error_handler(
        [](const std::string& what) { print_err("zinc-rt: a line of the log is lost: {}\n", what); });
    made->set_level(spdlog::level::from_str(options::get("ZINC_RT_LOG")));
    auto lines = std::make_unique<spdlog::pattern_formatter>();
    lines->add_flag<OneLine>('*').set_pattern("%H:%M:%S.%e %^%l%$ %*");
    made->set_formatter(std::move(lines));
    if (is_json) made->set_formatter(std::make_unique<JsonFormatter>());
    return made;
  }();
  return *logger;
}

}  // namespace zinc_rt
