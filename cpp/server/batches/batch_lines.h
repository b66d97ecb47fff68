// The lines of batches: incoming requests and outgoing answers. Each is one JSON object; blank lines are skipped.
// Thread rule: pure functions; a BatchReader by one thread at a time.
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

// The paths that a line may call.
inline constexpr const char* kBatchPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                                              "/v1/responses"};
bool is_batch_path(std::string_view path);
std::string batch_path_names();  // with commas

constexpr std::uint64_t kMostBatchLines = 50000;
constexpr std::size_t kMostLineBytes = 16u << 20;  // as a body has, unless the configuration says otherwise
constexpr std::size_t kMostCustomIdBytes = 512;
constexpr std::size_t kMostLineErrors = 100;  // that are told of one file
constexpr std::size_t kMostErrorBytes = 400;  // of the message of one; what is longer is cut

struct BatchLine {
  std::string custom_id, url, body;  // body: JSON
};

struct LineError {
  std::uint64_t line = 0;  // from 1 on; 0: the file as a whole
  std::string code, message, param;
};

// Reads {"custom_id", "method": "POST", "url", "body"}. `endpoint`: the url that is required; empty: any of
// kBatchPaths.
std::expected<BatchLine, LineError> read_batch_line(std::string_view text, std::uint64_t number,
                                                    std::string_view endpoint);

// Goes through the lines of a file, in order.
class BatchReader {
 public:
  // Errors: kNotFound.
  static Result<BatchReader> open(const std::string& path);
  // Reads the next line that is not blank. Returns false if there is none. A line longer than kMostLineBytes is cut
  // there.
  bool next(std::string& text);
  std::uint64_t number() const { return number_; }  // of the line that next() gave

 private:
  std::ifstream in_;
  std::uint64_t number_ = 0;
};

struct BatchCheck {
  std::uint64_t n_lines = 0;
  std::vector<LineError> errors;  // the first kMostLineErrors
};
// Checks all lines: read_batch_line must accept each, and no custom_id may stand twice. Errors: kNotFound.
Result<BatchCheck> check_batch_file(const std::string& path, std::string_view endpoint,
                                    std::uint64_t most_lines = UINT64_MAX);

// The beginning of each output line.
constexpr std::string_view kOutputLinesBegin = R"({"id":"batch_req_)";
// The output for a line, in OpenAI's form, without a line end. `id`: the output's id, after "batch_req_".
std::string answered_line(const std::string& id, const std::string& custom_id, const HttpResponse& answer);
// For a line that was not run.
std::string unanswered_line(const std::string& id, const std::string& custom_id, std::string_view code,
                            std::string_view message);

// The token counts in answers.
struct BatchUsage {
  std::uint64_t input = 0, cached = 0;      // cached: of the input
  std::uint64_t output = 0, reasoning = 0;  // reasoning: of the output

  BatchUsage& operator+=(const BatchUsage& other);
};
// The usage in an answer of any of kBatchPaths; nothing if the answer has none.
BatchUsage usage_of(const Json& answer);
// The custom_id and usage of an output line. Errors: 400 if it is not such a line.
struct AnsweredLine {
  std::string custom_id;
  BatchUsage usage;
};
ApiResult<AnsweredLine> read_answered_line(std::string_view line);

}  // namespace zinc_rt::server
