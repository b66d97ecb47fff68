// The lines of batches, and files of them that go on behind a kill.
#include "server/batches/batch_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/batches/line_file.h"

namespace zinc_rt::server {
namespace {

constexpr const char* kChatPath = "/v1/chat/completions";

std::string input_line(const std::string& id, const std::string& more = "") {
  return fmt::format(R"({{"custom_id":"{}","method":"POST","url":"{}","body":{{"a":1.5,"b":[]{}}}}})", id, kChatPath,
                     more);
}

class BatchLinesTest : public ::testing::Test {
 protected:
  BatchLinesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zrt_batch_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~BatchLinesTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) const {
    std::ofstream(path()) << text;
    return path();
  }
  std::string path() const { return (folder_ / "lines").string(); }
  std::string text() const {
    std::ifstream in(path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder_;
};

TEST(BatchLine, IsReadWithItsBody) {
  const auto line = read_batch_line(input_line("x"), 3, kChatPath);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->custom_id, "x");
  EXPECT_EQ(line->url, kChatPath);
  EXPECT_EQ(line->body, R"({"a":1.5,"b":[]})");
  EXPECT_TRUE(read_batch_line(input_line("x", ",\"stream\":false"), 1, ""));
}

struct WrongLine {
  std::string text;
  const char *param, *words;
};

TEST(BatchLine, AComplaintNamesTheLineTheFieldAndBothValues) {
  const std::string body = R"("body":{}})";
  for (const WrongLine& one : {
           WrongLine{"{", "", "line 7: [json]"},
           {"[]", "", "[] is given, an object wanted"},
           {R"({"method":"POST","url":"/v1/completions",)" + body, "custom_id", "it is missing"},
           {R"({"custom_id":5,"method":"POST","url":"/v1/completions",)" + body, "custom_id", "5 is given, a string"},
           {R"({"custom_id":"a","url":"/v1/completions",)" + body, "method", "it is missing"},
           {R"({"custom_id":"a","method":"GET","url":"/v1/completions",)" + body, "method",
            "\"GET\" is given, one of POST"},
           {R"({"custom_id":"a","method":"POST","url":"/v1/completions",)" + body, "url",
            "\"/v1/completions\" is given, the batch's endpoint is \"/v1/chat/completions\""},
           {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions"})", "body", "it is missing"},
           {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":[]})", "body", "[] is given"},
           {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{},"extra":1})", "extra",
            "no such field"},
           {input_line("a", ",\"stream\":true"), "body.stream", "true is given"},
           {input_line(std::string(kMostCustomIdBytes + 1, 'a')), "custom_id", "513 bytes are given, at most 512"},
       }) {
    const auto line = read_batch_line(one.text, 7, kChatPath);
    ASSERT_FALSE(line) << one.text;
    EXPECT_EQ(line.error().line, 7u);
    EXPECT_EQ(line.error().param, one.param) << line.error().message;
    EXPECT_TRUE(line.error().message.starts_with("line 7: ")) << line.error().message;
    EXPECT_NE(line.error().message.find(one.words), std::string::npos) << line.error().message;
  }
  const auto other = read_batch_line(R"({"custom_id":"a","method":"POST","url":"/v1/files","body":{}})", 1, "");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("one of /v1/chat/completions, "), std::string::npos) << other.error().message;
}

TEST_F(BatchLinesTest, AFileIsCheckedAsAWhole) {
  const auto good = check_batch_file(write(input_line("a") + "\r\n\n  \n" + input_line("b")), kChatPath);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->n_lines, 2u);
  EXPECT_TRUE(good->errors.empty());
  const auto twice =
      check_batch_file(write(input_line("a") + "\n\n" + input_line("b") + "\n" + input_line("a")), kChatPath);
  ASSERT_EQ(twice->errors.size(), 1u);
  EXPECT_EQ(twice->errors[0].line, 4u);
  EXPECT_EQ(twice->errors[0].code, "duplicate_custom_id");
  EXPECT_NE(twice->errors[0].message.find("that of line 1 too"), std::string::npos) << twice->errors[0].message;
  EXPECT_EQ(check_batch_file(write("\n"), kChatPath)->errors.at(0).code, "empty_file");
  EXPECT_EQ(check_batch_file(path(), kChatPath, 0)->errors.at(0).code, "empty_file");
  const auto many = check_batch_file(write(input_line("a") + "\n" + input_line("b") + "\n"), kChatPath, 1);
  ASSERT_EQ(many->errors.size(), 1u);
  EXPECT_EQ(many->errors[0].code, "too_many_lines");
  std::string bad;
  for (std::size_t i = 0; i < 2 * kMostLineErrors; ++i) bad += "{\n";
  EXPECT_EQ(check_batch_file(write(bad), kChatPath)->errors.size(), kMostLineErrors);
  EXPECT_FALSE(check_batch_file(path() + "x", kChatPath));
}

TEST(BatchOutput, IsOneLineInOpenAisForm) {
  HttpResponse answer;
  answer.status = 404;
  answer.headers = {{"x-request-id", "r"}};
  answer.body = "{\n \"error\": \"a\\nb\"\n}";
  const auto line = answered_line("1", "a\"b", answer);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(line.starts_with(kOutputLinesBegin));
  EXPECT_EQ(Json::parse(line), Json::parse(R"({"id":"batch_req_1","custom_id":"a\"b","response":{"status_code":404,
    "request_id":"r","body":{"error":"a\nb"}},"error":null})"));
  EXPECT_EQ(read_answered_line(line)->custom_id, "a\"b");
  answer.body = "no JSON\xff";
  EXPECT_TRUE(read_answered_line(answered_line("1", "a", answer)));
  const auto rest = unanswered_line("2", "c", "batch_expired", "m");
  EXPECT_EQ(Json::parse(rest), Json::parse(R"({"id":"batch_req_2","custom_id":"c","response":null,
    "error":{"code":"batch_expired","message":"m"}})"));
  EXPECT_EQ(read_answered_line(rest)->custom_id, "c");
  EXPECT_FALSE(read_answered_line(input_line("a")));
  EXPECT_FALSE(read_answered_line("{"));
}

TEST(BatchOutput, SaysWhatItTook) {
  struct Said {
    const char* body;
    BatchUsage usage;
  };
  const Said cases[] = {
      {R"({"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3},
          "completion_tokens_details":{"reasoning_tokens":2}}})",
       {7, 3, 5, 2}},
      {R"({"usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12,"input_tokens_details":{"cached_tokens":3},
          "output_tokens_details":{"reasoning_tokens":2}}})",
       {7, 3, 5, 2}},
      {R"({"data":[],"usage":{"prompt_tokens":4,"total_tokens":4}})", {4, 0, 0, 0}},
      {R"({"usage":null})", {}},
      {R"({"usage":{"prompt_tokens":-1,"completion_tokens":"9","prompt_tokens_details":1}})", {}},
      {R"([1])", {}},
      {"no JSON", {}},
  };
  for (const auto& [body, usage] : cases) {
    HttpResponse answer;
    answer.status = 200;
    answer.body = body;
    const auto read = read_answered_line(answered_line("1", "a", answer));
    ASSERT_TRUE(read) << body;
    for (const auto& found : {read->usage, usage_of(Json::parse(body, nullptr, false))}) {
      EXPECT_EQ(found.input, usage.input) << body;
      EXPECT_EQ(found.cached, usage.cached) << body;
      EXPECT_EQ(found.output, usage.output) << body;
      EXPECT_EQ(found.reasoning, usage.reasoning) << body;
    }
  }
}

TEST_F(BatchLinesTest, AFileGoesOnBehindItsLastWholeLineWhereverAKillTornIt) {
  const std::string one = unanswered_line("1", "a", "c", "m"), two = unanswered_line("2", "b", "c", "m");
  const std::string whole = one + "\n" + two + "\n";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    write(whole.substr(0, n));
    std::vector<std::string> found;
    {
      LineFile file;
      const auto opened =
          file.open(path(), kOutputLinesBegin, [&](std::string_view line, std::uint64_t number) -> Status {
            found.emplace_back(line);
            EXPECT_EQ(number, found.size());
            return {};
          });
      ASSERT_TRUE(opened) << n << opened.error().message;
      const std::size_t n_whole = n == whole.size() ? 2 : n > one.size() ? 1 : 0;
      ASSERT_EQ(found.size(), n_whole) << n;
      for (std::size_t i = n_whole; i < 2; ++i) ASSERT_TRUE(file.append(i == 0 ? one : two));
      EXPECT_EQ(file.n_bytes(), whole.size());
      ASSERT_TRUE(file.sync());
    }
    EXPECT_EQ(text(), whole) << n;
  }
}

TEST_F(BatchLinesTest, AFileOfAnotherKindIsLeftAsItIs) {
  write("notes of mine");
  LineFile file;
  const auto opened =
      file.open(path(), kOutputLinesBegin, [](std::string_view, std::uint64_t) -> Status { return {}; });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, StatusCode::kInvalidArgument);
  EXPECT_EQ(text(), "notes of mine");
  LineFile folder;
  EXPECT_FALSE(folder.open(folder_.string(), kOutputLinesBegin, nullptr));
}

TEST_F(BatchLinesTest, TwoDoNotWriteOneFile) {
  const auto each = [](std::string_view, std::uint64_t) -> Status { return {}; };
  LineFile first, second;
  ASSERT_TRUE(first.open(path(), kOutputLinesBegin, each));
  const auto refused = second.open(path(), kOutputLinesBegin, each);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another process"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace zinc_rt::server
