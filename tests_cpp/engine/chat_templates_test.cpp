// Which of a file's templates is for a request, and what is said where there is none.
#include "engine/chat_templates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zinc_rt {
namespace {

using testing::HasSubstr;

gguf::Metadata file_with(const std::vector<std::pair<std::string, std::string>>& templates) {
  gguf::Metadata out;
  for (const auto& [name, text] : templates)
    EXPECT_TRUE(out.add("tokenizer.chat_template" + name, {gguf::ValueType::kString, false, text}));
  return out;
}

// The text of the template that is taken, or the error.
std::string taken(const ChatTemplates& templates, bool has_tools) {
  const auto found = templates.get(has_tools);
  return found ? (*found)->text : found.error().message;
}

TEST(ChatTemplates, ToolsHaveTheirOwnWhereThereIsOne) {
  const auto both = ChatTemplates::read(file_with({{"", "d"}, {".tool_use", "t"}, {".rag", "r"}}));
  EXPECT_EQ(taken(both, false), "d");
  EXPECT_EQ(taken(both, true), "t");
  const auto plain = ChatTemplates::read(file_with({{"", "d"}, {".rag", "r"}}));
  EXPECT_EQ(taken(plain, true), "d");
  const auto named = ChatTemplates::read(file_with({{".default", "d"}, {".tool_use", "t"}}));
  EXPECT_EQ(taken(named, false), "d");
  EXPECT_EQ(taken(ChatTemplates::read(file_with({{"", "d"}, {".default", "other"}})), false), "d");
}

TEST(ChatTemplates, WhatIsMissingIsSaid) {
  const auto none = ChatTemplates::read({});
  EXPECT_THAT(taken(none, false), HasSubstr("the model file has none (key tokenizer.chat_template)"));
  EXPECT_EQ(none.find(true), nullptr);
  const auto named = ChatTemplates::read(file_with({{".tool_use", "t"}, {".rag", "r"}}));
  EXPECT_THAT(taken(named, false),
              HasSubstr("no default one (key tokenizer.chat_template), only those named tool_use, rag"));
  EXPECT_EQ(taken(named, true), "t");
  for (const char* blank : {"", " \n\t"}) {
    const auto empty = ChatTemplates::read(file_with({{"", blank}, {".tool_use", blank}}));
    EXPECT_THAT(taken(empty, false), HasSubstr("template (key tokenizer.chat_template) is empty"));
    EXPECT_THAT(taken(empty, true), HasSubstr("template (key tokenizer.chat_template.tool_use) is empty"));
  }
  const auto broken = ChatTemplates::read(file_with({{"", "{% if %}"}, {".tool_use", "t"}}));
  EXPECT_THAT(taken(broken, false), HasSubstr("[chat_template]"));
  EXPECT_EQ(taken(broken, true), "t");
  gguf::Metadata number;
  ASSERT_TRUE(number.add("tokenizer.chat_template", {gguf::ValueType::kU32, false, std::int64_t{5}}));
  EXPECT_THAT(taken(ChatTemplates::read(number), false), HasSubstr("needs string"));
}

}  // namespace
}  // namespace zinc_rt
