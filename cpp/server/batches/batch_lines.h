// Reads and writes the lines of batch files: requests in the input, answers in the output. Each line is one JSON
// object; blank lines are skipped. Thread rule: pure functions; a BatchReader by one thread at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/json_in.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

// The paths that a line of a batch may call.
inline constexpr const char* kBatchPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                                              "/v1/responses"};
bool is_batch_path(std::string_view path);
std::string batch_path_names();  // separated by commas, for error messages

constexpr std::uint64_t kMostBatchLines = 50000;
constexpr std::size_t kMostLineBytes = 16u << 20;  // the default limit on the body of an HTTP request
constexpr std::size_t kMostCustomIdBytes = 512;
constexpr std::size_t kMostLineErrors = 100;  // how many errors are reported per file
constexpr std::size_t kMostErrorBytes = 400;  // longer error messages are cut to this length

struct BatchLine {
  std::string custom_id, url, body;  // body: JSON
};

struct LineError {
  std::uint64_t line = 0;  // line number from 1; 0: the error is about the whole file
  std::string code, message, param;
};

// Reads a line {"custom_id", "method": "POST", "url", "body"}. The line's url must be `endpoint`. If `endpoint` is
// empty, it must be one of kBatchPaths.
std::expected<BatchLine, LineError> read_batch_line(std::string_view text, std::uint64_t number,
                                                    std::string_view endpoint);

// Reads the lines of a file in order.
class BatchReader {
 public:
  // Errors: kNotFound.
  static Result<BatchReader> open(const std::string& path);
  // Reads the next line that is not blank. Returns false at the end of the file. If a line is longer than
  // kMostLineBytes, returns only its first kMostLineBytes bytes.
  bool next(std::string& text);
  std::uint64_t number() const { return number_; }  // the number of the line that next() returned last

 private:
  std::ifstream in_;
  std::uint64_t number_ = 0;
};

struct BatchCheck {
  std::uint64_t n_lines = 0;
  std::vector<LineError> errors;  // the first kMostLineErrors
};
// Checks all lines: read_batch_line must accept each, and no custom_id may repeat. Errors: kNotFound.
Result<BatchCheck> check_batch_file(const std::string& path, std::string_view endpoint,
                                    std::uint64_t most_lines = UINT64_MAX);

// Each output line begins with this text. LineFile refuses to append to a file whose last line begins differently.
constexpr std::string_view kOutputLinesBegin = R"({"id":"batch_req_)";
// Returns the output line for an answer, in OpenAI's form, without a line end. Its id is "batch_req_" + `id`.
std::string answered_line(const std::string& id, const std::string& custom_id, const HttpResponse& answer);
// Returns the output line for a request that was not run.
std::string unanswered_line(const std::string& id, const std::string& custom_id, std::string_view code,
                            std::string_view message);

// Sums of the token counts in answers.
struct BatchUsage {
  std::uint64_t input = 0, cached = 0;      // cached is a part of input
  std::uint64_t output = 0, reasoning = 0;  // reasoning is a part of output

  BatchUsage& operator+=(const BatchUsage& other);
};
// Returns the usage in an answer of any of kBatchPaths; all 0 if the answer has none.
BatchUsage usage_of(const Json& answer);
// AnsweredLine holds the custom_id and the usage of an output line. read_answered_line() returns an error of status 400
// for a line of another kind.
struct AnsweredLine {
  std::string custom_id;
  BatchUsage usage;
};
ApiResult<AnsweredLine> read_answered_line(std::string_view line);

}  // namespace zinc_rt::server
