// AccessLog writes a line to stderr for each HTTP request, including refused ones.
// Thread rule: any thread. The log's own thread writes the lines, so that no request waits for a blocked terminal or
// pipe. At most 8,192 lines wait; beyond that the oldest lines are dropped.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace zinc_rt::server {

enum class AccessLogOf : std::uint8_t {
  kNothing,
  kRequests,  // writes all requests, except health probes that were answered with 200
  kAll,
};

// Converts the setting's name in the configuration (off, on, all). Returns nullopt for another name.
std::optional<AccessLogOf> access_log_of(std::string_view name);

class AccessLog {
 public:
  explicit AccessLog(AccessLogOf what);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void write(const AnsweredRequest& request);

 private:
  class Stderr;
  const AccessLogOf what_;
  const bool is_json_;
  std::shared_ptr<Stderr> stderr_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::logger> lines_;
};

// Returns the text of a line, without a line end. Text from clients is quoted and escaped if it has a space, a quote,
// or anything but printable ASCII. So a client can forge neither a second line nor a field.
std::string access_line(const AnsweredRequest& request, std::chrono::system_clock::time_point time, bool is_json);

// Joins names of fields by ", " for a header. All characters but letters, digits and "_.-[]" become %XX.
std::string header_of_names(const std::vector<std::string>& names);

}  // namespace zinc_rt::server
