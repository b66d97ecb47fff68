#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>
#include <ctime>

#include "base/json_text.h"
#include "base/options.h"

namespace zinc_rt {
namespace {

// The message with its control characters escaped: it may contain texts of clients, and none of these may look like a
// line of the log.
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

// One object a line: {"time", "level", "message"}.
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

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    const bool is_json = options::get("ZINC_RT_LOG_FORMAT") == "json";
    spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    if (is_json) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto made = std::make_shared<spdlog::logger>("zinc_rt", std::move(sink));
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
