// Text and bytes of a graph: both ways back give the same graph; damaged input gives an error, never a crash.
#include "ir/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "executor/ring/ring_executor.h"
#include "ir/op_rules.h"
#include "ir/serialize.h"
#include "ir/verify.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt::ir {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead = "graph \"g\" stage both\nbuffer request.x request f32 [tokens, 4]\n";

void expect_round_trips(const Graph& graph) {
  const auto text = print(graph);
  const auto parsed = parse(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(print(*parsed), text);
  const auto bytes = serialize(graph);
  EXPECT_EQ(serialize(*parsed), bytes);
  const auto back = deserialize(bytes);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(print(*back), text);
  EXPECT_EQ(serialize(*back), bytes);
}

TEST(Text, GraphsOfRealModelsRoundTrip) {
  for (const auto* model : {"llama_spm-f32", "llama_k-Q4_K_M", "phi3-f32", "gemma4_moe-f16", "qwen35moe-Q4_0"}) {
    const auto p = prepare(model_path(model), {});
    ASSERT_TRUE(p) << p.error().message;
    for (const auto* graph :
         {&p->prefill, &p->decode, &p->prefill_low, &p->decode_low, &p->state_copy, &p->page_copy}) {
      EXPECT_TRUE(verify(*graph));
      expect_round_trips(*graph);
    }
  }
}

TEST(Text, OddFloatsRoundTrip) {
  for (const float value :
       {0.0f, -0.0f, 1e-45f, 3.4028235e38f, 0.1f, INFINITY, -INFINITY, NAN, -NAN, std::bit_cast<float>(0x7f800001u)}) {
    auto graph =
        *parse(std::string(kHead) + "buffer act.y activation f32 [tokens, 4]\nact.y = SOFTCAP(request.x) {cap=1}\n");
    set_attr(graph.mutable_nodes()[0], "cap", value);
    expect_round_trips(graph);
    EXPECT_EQ(attr_u32(parse(print(graph))->nodes()[0], "cap"), std::bit_cast<std::uint32_t>(value));
  }
}

TEST(Text, CommentsAndEmptyLinesAreSkipped) {
  const auto graph = parse("\n# a comment\n  graph \"g\" stage decode\n\n  # more\nBARRIER");
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->stage(), Stage::kDecode);
  EXPECT_EQ(graph->nodes().size(), 1u);
}

struct Wrong {
  const char* text;
  const char* message;
};
const Wrong kWrong[] = {
    {"", "line 1: no graph"},
    {"# nothing\n", "line 1: no graph"},
    {"BARRIER\n", "line 1: the first line"},
    {"graph g stage both\n", "line 1: a quoted string"},
    {"graph \"g stage both\n", "line 1: the string does not end"},
    {"graph \"g\"\n", "line 1: \"stage\" is wanted"},
    {"graph \"g\" stage all\n", "line 1: unknown stage \"all\""},
    {"graph \"g\" stage both twice\n", "line 1: the line goes on"},
    {"graph \"g\" stage both\nbuffer act.x thing f32 [4]\n", "line 2: unknown buffer class \"thing\""},
    {"graph \"g\" stage both\n\nbuffer act.x activation f99 [4]\n", "line 3: unknown type"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 4\n", "line 2: a shape is wanted"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [4, 4\n", "line 2: the shape does not end"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [1, 2, 3, 4, 5]\n", "line 2: more than 4"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [x]\n", "line 2: \"x\" is not a number"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [-1]\n", "line 2: \"-1\" is not a number"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [4294967296]\n", "is not a number"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [4] tensor t\n", "line 2: a quoted string"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [4] here\n", "line 2: the line goes on"},
    {"graph \"g\" stage both\nbuffer act.x activation f32 [4]\nbuffer act.x activation f32 [4]\n",
     "line 3: buffer act.x is declared twice"},
    {"graph \"g\" stage both\nbuffer model.w weight f32 [4, 4] tensor \"t\" rows 4 8\n",
     "line 2: \"rows FIRST of COUNT\""},
    {"graph \"g\" stage both\nbuffer model.w weight f32 [4, 4] tensor \"t\" rows x of 8\n", "line 2: \"x\" is not"},
    {"graph \"g\" stage both\nNOTHING\n", "line 2: unknown opcode"},
    {"graph \"g\" stage both\nact.y = ADD(act.x)\n", "line 2: buffer act.y is not declared"},
    {"graph \"g\" stage both\nARGMAX(act.x)\n", "line 2: buffer act.x is not declared"},
    {"graph \"g\" stage both\nARGMAX(_\n", "line 2: the inputs do not end"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cup=1}\n", "line 2: SOFTCAP has no attribute cup"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cap}\n", "line 2: an attribute is name=value"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cap=x}\n", "line 2: \"x\" is not a number"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cap=0x1g}\n", "line 2: a hexadecimal"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cap=0x123456789}\n", "line 2: a hexadecimal"},
    {"graph \"g\" stage both\nSOFTCAP(_) {cap=1\n", "line 2: the attributes do not end"},
    {"graph \"g\" stage both\nGLU(_, _) {act=-1}\n", "line 2: \"-1\" is not a number"},
    {"graph \"g\" stage both\nBARRIER layer x\n", "line 2: \"x\" is not a number"},
    {"graph \"g\" stage both\nBARRIER layer\n", "line 2: \"\" is not a number"},
    {"graph \"g\" stage both\nBARRIER stage x\n", "line 2: unknown stage"},
    {"graph \"g\" stage both\nBARRIER now\n", "line 2: unexpected \"now\""},
    {"graph \"g\" stage both\nBARRIER )\n", "line 2: unexpected"},
    {"graph \"g\" stage both\nADD(_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_)\n", "line 2: too many inputs"},
    {"graph \"g\" stage both\n_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_ = ADD(_)\n", "line 2: too many outputs"},
};

TEST(Text, ErrorsNameTheLine) {
  for (const Wrong& wrong : kWrong) {
    const auto graph = parse(wrong.text);
    ASSERT_FALSE(graph) << wrong.text;
    EXPECT_EQ(graph.error().code, StatusCode::kInvalidArgument);
    EXPECT_THAT(graph.error().message, HasSubstr(wrong.message)) << wrong.text;
  }
}

std::vector<std::byte> sample_bytes() {
  const auto graph = parse(std::string(kHead) +
                           "buffer model.w weight q4_0 [8, 32] tensor \"w\"\nbuffer act.y activation f32 [tokens, 4]\n"
                           "act.y = SCALE(request.x, _) {scale=0.5} layer 3\nBARRIER layer 3\n");
  return serialize(*graph);
}

// Anything that comes back is checked, printed and serialized as a caller would.
void use(const Result<Graph>& graph) {
  if (!graph) {
    EXPECT_EQ(graph.error().code, StatusCode::kCorrupt);
    EXPECT_FALSE(graph.error().message.empty());
    return;
  }
  static_cast<void>(verify(*graph));
  EXPECT_FALSE(print(*graph).empty());
  EXPECT_TRUE(deserialize(serialize(*graph)));
}

TEST(Serialize, EveryTruncationIsAnError) {
  const auto bytes = sample_bytes();
  ASSERT_TRUE(deserialize(bytes));
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(deserialize({bytes.data(), n})) << n;
  auto longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(deserialize(longer));
}

TEST(Serialize, EveryByteMayBeWrong) {
  const auto bytes = sample_bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff}) {
      auto damaged = bytes;
      damaged[i] = static_cast<std::byte>(value);
      use(deserialize(damaged));
      damaged[i] = bytes[i] ^ static_cast<std::byte>(value);
      use(deserialize(damaged));
    }
}

void expect_corrupt(std::size_t offset, std::uint32_t value, std::size_t size, const std::string& words) {
  auto bytes = sample_bytes();
  std::memcpy(bytes.data() + offset, &value, size);
  const auto graph = deserialize(bytes);
  ASSERT_FALSE(graph) << words;
  EXPECT_THAT(graph.error().message, HasSubstr(words));
}

TEST(Serialize, ErrorsSayWhat) {
  const std::size_t buffers = 32, nodes = buffers + 3 * 44;
  expect_corrupt(0, 1, 4, "magic 0x00000001");
  expect_corrupt(4, 3, 4, "version 3, 2 wanted");
  expect_corrupt(8, 4, 4, "stage 4");
  expect_corrupt(12, 0xffffffff, 4, "bytes, ");
  expect_corrupt(24, 0xffffffff, 4, "the name lies");
  expect_corrupt(buffers + 0, 0xfffffff0, 4, "string at");
  expect_corrupt(buffers + 16, 6, 1, "class 6");
  constexpr auto kNoType = static_cast<std::uint32_t>(DType::kCount);
  expect_corrupt(buffers + 17, kNoType, 1, fmt::format("type {}", kNoType));
  expect_corrupt(buffers + 18, 5, 1, "5 dimensions");
  expect_corrupt(buffers + 19, 3, 1, "extent kind 3");
  expect_corrupt(nodes + 0, 999, 2, "opcode 999");
  expect_corrupt(nodes + 2, 0, 1, "stage 0");
  expect_corrupt(nodes + 8, 17, 1, "17 inputs");
  expect_corrupt(nodes + 9, 17, 1, "17 outputs");
  expect_corrupt(nodes + 12, 3, 4, "is no buffer, 3 are");
  expect_corrupt(nodes + 12, 0xfffffffe, 4, "is no buffer");
  expect_corrupt(nodes + 12 + 64, 0xffffffff, 4, "is no buffer");  // an output may not be absent
  expect_corrupt(nodes + 12 + 128 + 4, 1, 4, "attribute 1 is set, SCALE has 1");
  auto twice = sample_bytes();
  std::memcpy(twice.data() + buffers + 44, twice.data() + buffers, 8);  // the second buffer by the first one's name
  EXPECT_THAT(deserialize(twice).error().message, HasSubstr("two buffers are named request.x"));
}

}  // namespace
}  // namespace zinc_rt::ir
