// The rules of ir/verify.h, one scenario a file in data/: "# expect: ok" or words of the message, "# tensor: NAME TYPE
// DIMS" what the model holds. What the text form cannot say stands below.
#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "ir/op_rules.h"
#include "ir/serialize.h"
#include "ir/text.h"

namespace zinc_rt::ir {
namespace {

using ::testing::HasSubstr;

struct Scenario {
  std::string text, expect;
  std::map<std::string, TensorSpec> tensors;
};

Scenario read_scenario(const std::string& path) {
  Scenario scenario;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    scenario.text += line + "\n";
    if (line.starts_with("# expect: ")) scenario.expect = line.substr(10);
    if (line.starts_with("# tensor: ")) {
      std::istringstream words(line.substr(10));
      std::string name, type;
      TensorSpec spec;
      words >> name >> type;
      spec.dtype = *parse_dtype(type);
      for (std::uint64_t dim; words >> dim;) spec.dims.push_back(dim);
      scenario.tensors[name] = spec;
    }
  }
  return scenario;
}

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ZRT_SOURCE_DIR "/tests_cpp/ir/data"))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

class VerifyScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(VerifyScenario, IsAsExpected) {
  const auto scenario = read_scenario(ZRT_SOURCE_DIR "/tests_cpp/ir/data/" + GetParam() + ".ir");
  ASSERT_FALSE(scenario.expect.empty());
  const auto graph = parse(scenario.text);
  ASSERT_TRUE(graph) << graph.error().message;
  const TensorLookup lookup = [&](std::string_view name) -> std::optional<TensorSpec> {
    const auto it = scenario.tensors.find(std::string(name));
    return it == scenario.tensors.end() ? std::nullopt : std::optional(it->second);
  };
  const auto status = verify(*graph, scenario.tensors.empty() ? nullptr : lookup);
  if (scenario.expect == "ok") {
    EXPECT_TRUE(status) << status.error().message;
  } else {
    ASSERT_FALSE(status) << "accepted";
    EXPECT_EQ(status.error().code, StatusCode::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr(scenario.expect));
  }
  const auto again = parse(print(*graph));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(print(*again), print(*graph));
  if (status) {
    EXPECT_EQ(serialize(*again), serialize(*graph));
  }
}
INSTANTIATE_TEST_SUITE_P(Data, VerifyScenario, ::testing::ValuesIn(scenarios()),
                         [](const auto& info) { return info.param; });

Buffer buffer(std::string name, BufferClass buffer_class, std::vector<Dim> dims, DType dtype = DType::kF32) {
  Buffer b;
  b.name = std::move(name);
  b.buffer_class = buffer_class;
  b.dtype = dtype;
  for (const Dim dim : dims) b.dims[b.rank++] = dim;
  return b;
}

// y = x + x, right in every respect.
Graph add_graph() {
  Graph graph("g", Stage::kBoth);
  Node node;
  node.op = Op::ADD;
  node.n_inputs = 2, node.n_outputs = 1;
  node.inputs[0] = node.inputs[1] = graph.add_buffer(buffer("request.x", BufferClass::kRequest, {kTokens, 4}));
  node.outputs[0] = graph.add_buffer(buffer("act.y", BufferClass::kActivation, {kTokens, 4}));
  graph.add_node(node);
  return graph;
}
void expect_refused(const Graph& graph, const std::string& words) {
  const auto status = verify(graph);
  ASSERT_FALSE(status) << words;
  EXPECT_THAT(status.error().message, HasSubstr(words));
}

TEST(Verify, AcceptsTheBase) {
  EXPECT_TRUE(verify(add_graph()));
}

// verify() refuses these graphs for their extents, before it looks at nodes. match() alone must not compute with them.
TEST(Match, ExtentsThatNoBufferMayHave) {
  const auto matched = [](const std::string& name) {
    const auto graph = parse(read_scenario(ZRT_SOURCE_DIR "/tests_cpp/ir/data/" + name + ".ir").text);
    EXPECT_TRUE(graph) << graph.error().message;
    const auto bindings = match(*graph, graph->nodes().back());
    return bindings ? std::string("matched") : bindings.error().message;
  };
  EXPECT_EQ(matched("kv_write_symbols"), "matched");  // head_dim = 0 divides nothing
  EXPECT_THAT(matched("conv_no_width"), HasSubstr("width = 0, at least 1 wanted"));
}

TEST(Verify, DuplicateNames) {
  auto graph = add_graph();
  graph.add_buffer(buffer("act.y", BufferClass::kActivation, {kTokens, 5}));
  expect_refused(graph, "two buffers are named act.y");
}

TEST(Verify, UndeclaredOperands) {
  for (const BufferId bad : {BufferId{2}, BufferId{INT32_MAX}, BufferId{-2}, BufferId{INT32_MIN}}) {
    auto graph = add_graph();
    graph.mutable_nodes()[0].inputs[1] = bad;
    expect_refused(graph, "is not declared, 2 are");
    graph = add_graph();
    graph.mutable_nodes()[0].outputs[0] = bad;
    expect_refused(graph, "is not declared, 2 are");
  }
  auto graph = add_graph();
  graph.mutable_nodes()[0].outputs[0] = kNoBuffer;
  expect_refused(graph, "operand is missing");
}

TEST(Verify, UnknownOpcodeAndStage) {
  auto graph = add_graph();
  graph.mutable_nodes()[0].op = Op::kCount;
  expect_refused(graph, "is unknown");
  for (const int stage : {0, 4, 255}) {
    graph = add_graph();
    graph.mutable_nodes()[0].stage = static_cast<Stage>(stage);
    expect_refused(graph, "stage");
  }
}

TEST(Verify, QuotesInNames) {
  expect_refused(Graph("a\"b", Stage::kBoth), "graph's name");
  expect_refused(Graph("a\nb", Stage::kBoth), "graph's name");
  for (const auto* tensor : {"a\"b", "a\nb"}) {
    auto graph = add_graph();
    auto weight = buffer("model.w", BufferClass::kWeight, {4});
    weight.tensor = tensor;
    graph.add_buffer(weight);
    expect_refused(graph, "tensor's name");
  }
}

TEST(Verify, MoreThanFourExtents) {
  auto graph = add_graph();
  auto five = buffer("act.z", BufferClass::kActivation, {2});
  five.rank = 5;
  graph.add_buffer(five);
  expect_refused(graph, "5 dimensions, 1 to 4 allowed");
}

}  // namespace
}  // namespace zinc_rt::ir
