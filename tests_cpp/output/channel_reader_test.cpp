// Messages with headers: what an answer in channels comes out as, in pieces of any size.
#include "output/channel_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strict_json.h"
#include "output/parser.h"
#include "show_pieces.h"

namespace zinc_rt::output {
namespace {

constexpr std::string_view kMarks[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                                       "<|end|>",   "<|call|>",    "<|return|>",    "<|other|>"};

// Pushes an answer whose marks are special tokens, with at most `most` bytes of text at once.
std::string parsed(std::string_view answer, bool with_calls = true, std::size_t most = 1000) {
  const Formats formats(
      find_call_format("harmony"), &reasoning_formats()[0], [](std::string_view) { return std::nullopt; }, true);
  Parser parser(formats, {.with_calls = with_calls, .tools = std::make_shared<ToolTypes>(*read_any_json("[]"))});
  std::vector<OutputPiece> all;
  const auto add = [&](std::vector<OutputPiece> pieces) { std::ranges::move(pieces, std::back_inserter(all)); };
  while (!answer.empty()) {
    const auto* mark = std::ranges::find_if(kMarks, [&](std::string_view text) { return answer.starts_with(text); });
    const std::size_t n =
        mark != std::end(kMarks) ? mark->size() : std::min({most, answer.size(), answer.find('<', 1)});
    add(parser.push(1, answer.substr(0, n), mark != std::end(kMarks) ? n : 0, mark != std::end(kMarks)));
    answer.remove_prefix(n);
  }
  add(parser.finish());
  return show(all);
}
void expect_parsed(std::string_view answer, const std::string& wanted, bool with_calls = true) {
  for (const std::size_t most : {1u, 2u, 3u, 7u, 1000u})
    EXPECT_EQ(parsed(answer, with_calls, most), wanted) << answer << ", " << most << " bytes at once";
}

TEST(ChannelReader, ReasoningThenTheAnswer) {
  expect_parsed("<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.",
                "think Let me see.\ntext It is 4.");
  expect_parsed("<|channel|>final<|message|>Hi <there><|return|>", "text Hi <there>");
}
TEST(ChannelReader, CallsNameTheirToolBeforeOrBehindTheChannel) {
  const std::string wanted = "think Weather.\ncall 0 get_weather\nargs 0 {\"city\": \"Rome\"}\nend 0";
  expect_parsed(
      "<|channel|>analysis<|message|>Weather.<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Rome\"}<|call|>",
      wanted);
  expect_parsed(
      "<|channel|>analysis<|message|>Weather.<|end|><|start|>assistant to=functions.get_weather<|channel|>"
      "commentary json<|message|>{\"city\": \"Rome\"}",
      wanted);  // the token <|call|> ended the generation and is not seen
  expect_parsed(" to=functions.now<|channel|>commentary<|message|>{}", "call 0 now\nargs 0 {}\nend 0");
}
// gpt-oss writes many of its calls in the channel of its reasoning. The recipient tells what is a call.
TEST(ChannelReader, ACallMayStandInTheReasoningsChannel) {
  expect_parsed(
      "<|channel|>analysis<|message|>Search.<|end|><|start|>assistant<|channel|>analysis to=functions.run "
      "code<|message|>"
      "\n{\"code\": \"ls\"}<|call|><|start|>assistant<|channel|>analysis to=functions.now "
      "<|constrain|>json<|message|>{}<|call|>",
      "think Search.\ncall 0 run\nargs 0 \n{\"code\": \"ls\"}\nend 0\ncall 1 now\nargs 1 {}\nend 1");
}
TEST(ChannelReader, ACallThatWasCutOffStaysOpen) {
  expect_parsed("<|channel|>commentary to=functions.run<|message|>{\"code\": \"1", "call 0 run\nargs 0 {\"code\": \"1");
}
TEST(ChannelReader, WithoutToolsACallIsText) {
  expect_parsed("<|channel|>commentary to=functions.run<|message|>{}<|call|>", "text {}", false);
}
TEST(ChannelReader, MessagesOfOneKindArePartsOfAnother) {
  expect_parsed(
      "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>"
      "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
      "<|start|>assistant<|channel|>final<|message|>Done.<|return|>",
      "think a\n\nb\ntext I look.\n\nDone.");
}
TEST(ChannelReader, MessagesToOtherToolsAreReasoning) {
  expect_parsed("<|channel|>analysis to=python code<|message|>print(1)<|call|>", "think print(1)");
}
// A grammar that begins with the answer's first token leaves no room for a header.
TEST(ChannelReader, TextWithoutAHeaderIsTheAnswer) {
  expect_parsed("{\"a\": 1}", "text {\"a\": 1}");
  expect_parsed("to", "text to");
  expect_parsed("tomorrow", "text tomorrow");
}
TEST(ChannelReader, UnknownMarksAreDropped) {
  expect_parsed("<|channel|>final<|message|>a<|other|>b<|message|>c", "text abc");
}
TEST(ChannelReader, HeadersHaveABound) {
  expect_parsed("<|channel|>final " + std::string(100000, 'x') + "<|message|>a", "text a");
}

}  // namespace
}  // namespace zinc_rt::output
