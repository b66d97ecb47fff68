// Patterns of joins: what they match, and what they refuse.
#include "lower/join.h"

#include <gmock/gmock.h>

#include "ir/text.h"

namespace zinc_rt::lower {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHead = R"(graph "g" stage both
buffer request.x request f32 [tokens, 32]
buffer model.w weight q8_0 [32, 32] tensor "t"
buffer act.a activation f32 [tokens, 32]
buffer act.b activation f32 [tokens, 32]
buffer act.c activation f32 [tokens, 32]
buffer act.q activation q8a32 [tokens, 32]
buffer act.r activation f32 [tokens, 32]
act.r = ADD(request.x, request.x)
BARRIER
)";

ir::Graph graph(std::string_view nodes) {
  auto parsed = ir::parse(std::string(kHead) + std::string(nodes));
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : ir::Graph();
}
// The nodes of each match, as indexes of the graph's.
std::vector<std::vector<std::size_t>> found(const ir::Graph& graph, std::string_view pattern) {
  const std::string_view patterns[] = {pattern};
  const auto joins = find_joins(graph, patterns);
  EXPECT_TRUE(joins) << (joins ? "" : joins.error().message);
  std::vector<std::vector<std::size_t>> nodes;
  if (joins)
    for (const auto& join : *joins) nodes.push_back(join.nodes);
  return nodes;
}
std::string error(std::string_view pattern) {
  const std::string_view patterns[] = {pattern};
  const auto joins = find_joins({}, patterns);
  return joins ? "" : joins.error().message;
}

TEST(Joins, FollowValuesNotPlaces) {
  constexpr std::string_view kPattern = "GLU y:h; QUANTIZE x:h";
  EXPECT_THAT(found(graph("act.b = GLU(act.r, act.r) {act=0}\nBARRIER\nact.q = QUANTIZE(act.b)\n"), kPattern),
              ElementsAre(ElementsAre(2, 4)));
  // Of other rows.
  EXPECT_THAT(found(graph("act.b = GLU(act.r, act.r) {act=0}\nBARRIER\nact.q = QUANTIZE(act.r)\n"), kPattern),
              ElementsAre());
  // Not behind one another.
  EXPECT_THAT(found(graph("act.b = GLU(act.r, act.r) {act=0}\nBARRIER\nact.c = ADD(act.r, act.r)\nBARRIER\n"
                          "act.q = QUANTIZE(act.b)\n"),
                    kPattern),
              ElementsAre());
  EXPECT_THAT(found(graph("act.b = ADD(act.r, act.r)\nBARRIER\nact.q = QUANTIZE(act.b)\n"), "ADD|GLU; QUANTIZE"),
              ElementsAre(ElementsAre(2, 4)));
}

TEST(Joins, NamesAreDifferentValues) {
  const auto g = graph("act.b = ADD(act.r, act.r)\n");
  EXPECT_THAT(found(g, "ADD x:a y:b"), ElementsAre());
  EXPECT_THAT(found(g, "ADD x:a y:a"), ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(Joins, APrimeIsAnUpdateInPlace) {
  constexpr std::string_view kPattern = "LINEAR y:p; ADD x:r y:p z:r'";
  constexpr std::string_view kProduct =
      "act.q = QUANTIZE(act.r)\nBARRIER\nact.b = LINEAR(act.q, model.w, _)\nBARRIER\n";
  EXPECT_THAT(found(graph(std::string(kProduct) + "act.r = ADD(act.r, act.b) inplace\n"), kPattern),
              ElementsAre(ElementsAre(4, 6)));
  EXPECT_THAT(found(graph(std::string(kProduct) + "act.c = ADD(act.r, act.b)\n"), kPattern), ElementsAre());
}

TEST(Joins, TrailingOptionalNodesMayBeAbsent) {
  constexpr std::string_view kPattern = "GLU y:h; QUANTIZE x:h y:q; ?LINEAR x:q y:p; ?ADD x:r y:p z:r'";
  const std::string begin = "act.b = GLU(act.r, act.r) {act=0}\nBARRIER\nact.q = QUANTIZE(act.b)\nBARRIER\n";
  const std::string product = "act.c = LINEAR(act.q, model.w, _)\nBARRIER\n";
  EXPECT_THAT(found(graph(begin), kPattern), ElementsAre(ElementsAre(2, 4)));
  EXPECT_THAT(found(graph(begin + product), kPattern), ElementsAre(ElementsAre(2, 4, 6)));
  EXPECT_THAT(found(graph(begin + product + "act.r = ADD(act.r, act.c) inplace\n"), kPattern),
              ElementsAre(ElementsAre(2, 4, 6, 8)));
  EXPECT_THAT(found(graph(begin + "act.r = ADD(act.r, act.b) inplace\n"), kPattern), ElementsAre(ElementsAre(2, 4)));
  const std::string_view patterns[] = {kPattern};
  EXPECT_EQ((*find_joins(graph(begin + product), patterns))[0].least, 2u);
}

TEST(Joins, KeptMemoryIsNotWritten) {
  constexpr std::string_view kPattern = "GLU gate:a up:b y:h; QUANTIZE x:h y:q; keep a";
  const auto apart = graph("act.c = GLU(act.r, act.b) {act=0}\nBARRIER\nact.q = QUANTIZE(act.c)\n");
  const std::string_view patterns[] = {kPattern};
  const auto joins = *find_joins(apart, patterns);
  ASSERT_EQ(joins.size(), 1u);
  ASSERT_EQ(joins[0].kept.size(), 1u);
  EXPECT_EQ(apart.buffer(joins[0].kept[0].buffer).name, "act.r");
  EXPECT_EQ(joins[0].kept[0].until, 4u);
  const auto in_place = graph("act.r = GLU(act.r, act.b) {act=0} inplace\nBARRIER\nact.q = QUANTIZE(act.r)\n");
  EXPECT_THAT(found(in_place, kPattern), ElementsAre());
}

TEST(Joins, APatternThatCannotBeReadSaysWhere) {
  EXPECT_THAT(error("GLUE y:h"), HasSubstr("names an op that there is not"));
  EXPECT_THAT(error("GLU of:h"), HasSubstr("\"of:h\" names an operand that the op has not"));
  EXPECT_THAT(error("GLU y"), HasSubstr("\"y\" is no operand:value"));
  EXPECT_THAT(error("GLU y:h; keep x"), HasSubstr("\"x\" is no value"));
  EXPECT_THAT(error("keep x"), HasSubstr("comes before any node"));
  EXPECT_THAT(error("GLU y:h; ?QUANTIZE x:h; ADD"), HasSubstr("must be there"));
  EXPECT_THAT(error("ADD z:r'"), HasSubstr("\"r'\" updates no value"));
}

}  // namespace
}  // namespace zinc_rt::lower
