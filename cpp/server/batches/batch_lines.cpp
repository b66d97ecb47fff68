#include "server/batches/batch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/strict_json.h"
#include "base/utf8.h"

namespace zinc_rt::server {
namespace {

// Returns the text of a required field. Errors: 400.
ApiResult<std::string> needed_text(Fields& fields, const char* name, std::size_t max_bytes) {
  ZRT_TRY(auto value, fields.get_string(name, max_bytes));
  if (!value || value->empty()) return fields.wrong(name, "it is missing, a string wanted");
  return *std::move(value);
}

ApiResult<BatchLine> read_line(std::string_view text, std::string_view endpoint) {
  if (text.size() > kMostLineBytes) {
    auto error = make_error(400, fmt::format("the line has more than {} bytes", kMostLineBytes));
    error.code = "line_too_long";
    return std::unexpected(std::move(error));
  }
  ZRT_TRY(const auto object, parse_json(text));
  if (!object.is_object()) {
    auto error = make_error(400, fmt::format("{} is given, an object wanted", show(object)));
    error.code = "invalid_json";
    return std::unexpected(std::move(error));
  }
  Fields fields(object);
  BatchLine line;
  ZRT_TRY(line.custom_id, needed_text(fields, "custom_id", kMostCustomIdBytes));
  ZRT_TRY(const auto method, fields.get_choice("method", {"POST"}));
  if (!method) return fields.wrong("method", "it is missing, \"POST\" wanted");
  ZRT_TRY(line.url, needed_text(fields, "url", 256));
  if (!endpoint.empty() && line.url != endpoint)
    return fields.wrong("url", fmt::format("\"{}\" is given, the batch's endpoint is \"{}\"", line.url, endpoint));
  if (!is_batch_path(line.url))
    return fields.wrong("url", fmt::format("\"{}\" is given, one of {} wanted", line.url, batch_path_names()));
  const Json* body = fields.get("body");
  if (body == nullptr) return fields.wrong("body", "it is missing, an object wanted");
  if (!body->is_object()) return fields.wrong("body", show(*body) + " is given, an object wanted");
  ZRT_CHECK_OK(fields.expect_no_others());
  Fields in_body(*body, "body.");
  ZRT_TRY(const auto stream, in_body.get_bool("stream"));
  if (stream.value_or(false)) return in_body.wrong("stream", "true is given, and a batch has no streams");
  line.body = as_text(*body);
  return line;
}

std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  text.resize(utf8_valid_prefix(std::string_view(text).substr(0, most)));
  return text + "...";
}

// Makes the error of a line. The message may contain text of a client's line, so it is shortened.
LineError line_error(std::uint64_t number, std::string code, const std::string& message, const std::string& param) {
  return {number, std::move(code), cut(fmt::format("line {}: {}", number, message), kMostErrorBytes),
          cut(param, kMostErrorBytes / 4)};
}

LineError file_error(std::string code, std::string message) {
  return {0, std::move(code), std::move(message), {}};
}

}  // namespace

bool is_batch_path(std::string_view path) {
  return std::ranges::find(kBatchPaths, path) != std::end(kBatchPaths);
}

std::string batch_path_names() {
  return fmt::format("{}", fmt::join(kBatchPaths, ", "));
}

std::expected<BatchLine, LineError> read_batch_line(std::string_view text, std::uint64_t number,
                                                    std::string_view endpoint) {
  auto line = read_line(text, endpoint);
  if (line) return *std::move(line);
  auto& error = line.error();
  return std::unexpected(
      line_error(number, error.code.empty() ? "invalid_line" : error.code, error.message, error.param));
}

Result<BatchReader> BatchReader::open(const std::string& path) {
  BatchReader reader;
  reader.in_.open(path, std::ios::binary);
  if (!reader.in_) return fail(StatusCode::kNotFound, "[batch] {} cannot be read", path);
  return reader;
}

bool BatchReader::next(std::string& text) {
  while (std::getline(in_, text)) {
    ++number_;
    if (text.ends_with('\r')) text.pop_back();
    if (text.find_first_not_of(" \t") != std::string::npos) return true;
  }
  return false;
}

Result<BatchCheck> check_batch_file(const std::string& path, std::string_view endpoint, std::uint64_t most_lines) {
  ZRT_TRY(auto reader, BatchReader::open(path));
  BatchCheck check;
  std::unordered_map<std::string, std::uint64_t> first;  // key: a custom_id; value: the first line that has it
  const auto complain = [&](LineError error) {
    if (check.errors.size() < kMostLineErrors) check.errors.push_back(std::move(error));
  };
  for (std::string text; reader.next(text);) {
    ++check.n_lines;
    if (check.n_lines > most_lines) {
      complain(file_error("too_many_lines",
                          fmt::format("the file has more than {} lines, {} allowed", most_lines, most_lines)));
      break;
    }
    auto line = read_batch_line(text, reader.number(), endpoint);
    if (!line) {
      complain(std::move(line.error()));
      continue;
    }
    const auto [it, is_new] = first.emplace(std::move(line->custom_id), reader.number());
    if (!is_new)
      complain(line_error(reader.number(), "duplicate_custom_id",
                          fmt::format("custom_id: {} is that of line {} too", show(Json(it->first)), it->second),
                          "custom_id"));
  }
  if (check.n_lines == 0) complain(file_error("empty_file", "the file has no line"));
  return check;
}

std::string answered_line(const std::string& id, const std::string& custom_id, const HttpResponse& answer) {
  std::string request_id;
  for (const auto& [name, value] : answer.headers)
    if (name == "x-request-id") request_id = value;
  // An output line must be a single line even if the answer's body contains line ends.
  std::string body = answer.body;
  if (const auto value = read_any_json(body); !value)
    body = json_string(replace_invalid_utf8(body));
  else if (body.find_first_of("\r\n") != std::string::npos)
    body = as_text(*value);
  return fmt::format(R"({}{}","custom_id":{},"response":{{"status_code":{},"request_id":{},"body":{}}},"error":null}})",
                     kOutputLinesBegin, id, json_string(custom_id), answer.status, json_string(request_id), body);
}

std::string unanswered_line(const std::string& id, const std::string& custom_id, std::string_view code,
                            std::string_view message) {
  return fmt::format(R"({}{}","custom_id":{},"response":null,"error":{{"code":{},"message":{}}}}})", kOutputLinesBegin,
                     id, json_string(custom_id), json_string(code), json_string(message));
}

BatchUsage& BatchUsage::operator+=(const BatchUsage& other) {
  input += other.input;
  cached += other.cached;
  output += other.output;
  reasoning += other.reasoning;
  return *this;
}

BatchUsage usage_of(const Json& answer) {
  // In each pair, the first name is used by chats, completions and embeddings, the second by Responses.
  constexpr const char* kNames[][2] = {{"prompt_tokens", "input_tokens"}, {"completion_tokens", "output_tokens"}};
  constexpr const char* kDetails[][2] = {{"prompt_tokens_details", "input_tokens_details"},
                                         {"completion_tokens_details", "output_tokens_details"}};
  BatchUsage out;
  if (!answer.is_object() || !answer.contains("usage") || !answer["usage"].is_object()) return out;
  const Json& usage = answer["usage"];
  const auto count = [](const Json& from, const char* name) -> std::uint64_t {
    const auto it = from.find(name);
    return it != from.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  const auto detail = [&](const char* list, const char* name) -> std::uint64_t {
    const auto it = usage.find(list);
    return it != usage.end() && it->is_object() ? count(*it, name) : 0;
  };
  for (const std::size_t spelling : {0, 1}) {
    out.input += count(usage, kNames[0][spelling]);
    out.output += count(usage, kNames[1][spelling]);
    out.cached += detail(kDetails[0][spelling], "cached_tokens");
    out.reasoning += detail(kDetails[1][spelling], "reasoning_tokens");
  }
  return out;
}

ApiResult<AnsweredLine> read_answered_line(std::string_view line) {
  ZRT_TRY(const auto object, parse_json(line));
  if (!object.is_object() || !object.contains("response") || !object.contains("error"))
    return std::unexpected(make_error(400, "no line of a batch's output"));
  Fields fields(object);
  AnsweredLine out;
  ZRT_TRY(out.custom_id, needed_text(fields, "custom_id", kMostCustomIdBytes));
  const Json& response = object["response"];
  if (response.is_object() && response.contains("body")) out.usage = usage_of(response["body"]);
  return out;
}

}  // namespace zinc_rt::server
