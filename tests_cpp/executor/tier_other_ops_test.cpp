// Ops that no model of ours has now, and ops as models here run them seldom, on every tier that has a kernel for them,
// against T-CPU.
#include <array>
#include <random>

#include "kernels/common/push.h"
#include "kernels/common/state_run.h"
#include "random_weights.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

using enum ir::BufferClass;

std::vector<float> random_values(std::size_t n, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(rng);
  return values;
}

class TierOtherOps : public TierGraphTest {
 protected:
  // The graph has one kind of op besides those that every tier has.
  void expect_same(ir::Op op, const ir::Graph& graph, std::uint32_t n, const Memory& given,
                   std::initializer_list<const char*> outputs) {
    if (!(*GetParam()->make_ring({.threads = 2, .cpu_kernels = {}}))->kernels().has(op)) return;
    auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, outputs),
         got = run_graph(*GetParam(), graph, n, given, outputs);
    for (const auto* name : outputs) EXPECT_TRUE(wanted[name] == got[name]) << to_string(op) << " " << name;
  }
  static bool is_cuda() { return std::string_view(GetParam()->name) == "t_cuda"; }
  std::mt19937 rng_{3};
};

// Slots and fields outside the table among them.
TEST_P(TierOtherOps, WordsOfTheSlotTable) {
  constexpr std::uint32_t kSlots = 50, kFields = 7, kRows = 40;
  std::vector<std::uint32_t> table(kSlots * kFields), values(kRows);
  for (auto& word : table) word = static_cast<std::uint32_t>(rng_());
  for (auto& word : values) word = static_cast<std::uint32_t>(rng_());
  std::vector<std::int32_t> slots(kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) slots[i] = static_cast<std::int32_t>(i * 7 % (kSlots + 10));
  slots[3] = slots[35];  // of two rows with the same slot the last one is stored
  slots[20] = slots[21];
  for (const ir::Op op : {ir::Op::LOAD_REQUEST_STATE, ir::Op::STORE_REQUEST_STATE})
    for (const std::uint32_t field : {2u, kFields}) {
      ir::Graph graph("slots", ir::Stage::kBoth);
      const auto all = declare(graph, "state.slots", kState, DType::kU32, {kSlots, kFields}),
                 slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
                 value = declare(graph, "act.value", kActivation, DType::kU32, {ir::kTokens});
      auto& node = op == ir::Op::LOAD_REQUEST_STATE ? add_node(graph, op, {all, slot}, {value})
                                                    : add_node(graph, op, {all, slot, value}, {all});
      node.inplace = op == ir::Op::STORE_REQUEST_STATE;
      ir::set_attr(node, "field", field);
      expect_same(
          op, graph, kRows,
          {{"state.slots", bytes_of(table)}, {"request.slot", bytes_of(slots)}, {"act.value", bytes_of(values)}},
          {"state.slots", "act.value"});
    }
}

// Tokens of ids that the host knows, and of ids that the slot table has: a token is stored and read again, as a step that
// begins before the step before it has ended does.
TEST_P(TierOtherOps, TokensOfTheSlotTable) {
  constexpr std::uint32_t kSlots = 5, kRows = 6, kVocabulary = 50, kWidth = 64;
  const std::vector<std::int32_t> ids{7, -1, -1, 3, -1, -2}, slots{4, 0, 3, 1, 3, 0}, picked{11, 22, 33, 44, 60, 1};
  std::vector<float> rows(kVocabulary * kWidth);
  for (float& value : rows) value = static_cast<float>(rng_() % 1000);
  ir::Graph graph("slots", ir::Stage::kBoth);
  const auto all = declare(graph, "state.slots", kState, DType::kU32, {kSlots, 1}),
             slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
             token = declare(graph, "act.token", kActivation, DType::kI32, {ir::kTokens}),
             ring = declare(graph, "host_ring.tokens", kOutput, DType::kU32, {9, 4}),
             id = declare(graph, "request.id", kRequest, DType::kI32, {ir::kTokens}),
             table = declare(graph, "model.table", kWeight, DType::kF32, {kVocabulary, kWidth}),
             y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, kWidth});
  add_node(graph, ir::Op::STREAM_OUT, {token, slot, ring}, {ring}).inplace = true;
  auto& store = add_node(graph, ir::Op::STORE_REQUEST_STATE, {all, slot, token}, {all});
  store.inplace = true;
  ir::set_attr(store, "field", 0u);
  ir::set_attr(add_node(graph, ir::Op::EMBED, {id, table, slot, all}, {y}), "scale", 1.0f);
  expect_same(ir::Op::EMBED, graph, kRows,
              {{"request.slot", bytes_of(slots)},
               {"act.token", bytes_of(picked)},
               {"request.id", bytes_of(ids)},
               {"model.table", bytes_of(rows)}},
              {"state.slots", "host_ring.tokens", "act.y"});
}

TEST_P(TierOtherOps, DraftsThatAreRight) {
  constexpr std::uint32_t kDrafts = 9, kTokens = 5, kVocabulary = 333;
  std::vector<float> logits(kDrafts * kTokens * kVocabulary);
  for (float& l : logits) l = static_cast<float>(rng_() % 1000);
  std::vector<std::int32_t> drafts;
  for (std::uint32_t row = 0; row < kDrafts * kTokens; ++row) {
    const auto* of_row = logits.data() + row * kVocabulary;
    const auto best = static_cast<std::int32_t>(std::max_element(of_row, of_row + kVocabulary) - of_row);
    drafts.push_back(row % 7 == 6 ? best + 1 : best);
  }
  ir::Graph graph("drafts", ir::Stage::kBoth);
  const auto draft = declare(graph, "act.draft", kActivation, DType::kI32, {ir::kTokens, kTokens}),
             of = declare(graph, "act.logits", kActivation, DType::kF32, {ir::kTokens, kTokens, kVocabulary}),
             length = declare(graph, "act.length", kActivation, DType::kI32, {ir::kTokens});
  add_node(graph, ir::Op::VERIFY_K, {draft, of}, {length});
  expect_same(ir::Op::VERIFY_K, graph, kDrafts, {{"act.draft", bytes_of(drafts)}, {"act.logits", bytes_of(logits)}},
              {"act.length"});
}

TEST_P(TierOtherOps, MatrixProductsOfQ4K) {
  for (const Shape& s : {Shape{33, 512, 1}, Shape{70, 768, 19}}) {
    ir::Graph graph("matmul", ir::Stage::kBoth);
    const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, s.k}),
               q = declare(graph, "act.q", kActivation, DType::kQ8A256, {ir::kTokens, s.k}),
               w = declare(graph, "model.w", kWeight, DType::kQ4_K, {s.m, s.k}),
               y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, s.m});
    add_node(graph, ir::Op::QUANTIZE, {x}, {q});
    add_node(graph, ir::Op::MATMUL_WMMA_Q4K, {q, w}, {y});
    expect_same(ir::Op::MATMUL_WMMA_Q4K, graph, s.n,
                {{"act.x", bytes_of(random_rows(s, rng_))}, {"model.w", random_blocks(DType::kQ4_K, s, rng_)}},
                {"act.y"});
  }
}

// A step of three slots for a recurrent op. Slot 2 replays two guesses of its last step, saves the state after the first
// of them in the checkpoint 4, and has two tokens and three guesses. Slot 0 has two tokens, the first of its text. Slot 1
// replays one guess and has one token; slot 3 has one token.
struct RecurrentStep {
  static constexpr std::uint32_t kSlots = 4, kEntries = 6, kSaved = 3;
  std::vector<std::int32_t> positions{17, 18, 19, 20, 21, 0, 1, 9, 30}, slots{2, 2, 2, 2, 2, 0, 0, 1, 3};
  std::vector<StateRun> runs{{0, kAllCertain, 0, 0, 0}, {1, kAllCertain, 0, 0, 0}, {2, 2, 1, 16, 4}, {0, 1, 0, 0, 0}};
  std::uint32_t n() const { return static_cast<std::uint32_t>(slots.size()); }

  // Prompts: slot 3 has a token, slot 0 the first 150 of its text, slot 1 replays a guess before 141, and slot 2 ends in
  // three guesses.
  static RecurrentStep of_prompts() {
    RecurrentStep step{
        {}, {}, {{0, kAllCertain, 0, 0, 0}, {1, kAllCertain, 1, 7, 5}, {0, 8, 0, 0, 0}, {0, 1, 0, 0, 0}}};
    for (const auto& [slot, first, n] : {std::array{3, 30, 1}, {0, 0, 150}, {1, 7, 141}, {2, 40, 11}})
      for (int i = 0; i < n; ++i) step.slots.push_back(slot), step.positions.push_back(first + i);
    return step;
  }
};

TEST_P(TierOtherOps, GuessesOfAConvolution) {
  struct Shape {
    std::uint32_t width, channels;
    bool has_bias = false;
    std::uint32_t act = push::kConvSilu;
  };
  std::vector<Shape> shapes{{2, 40}, {2, 600}, {4, 40}, {4, 600}, {5, 40}, {5, 600}};
  // T1 and T2 have no bias and no other activation.
  if (is_cuda())
    shapes.insert(shapes.end(), {{4, 300, true}, {3, 257, false, push::kConvNone}, {2, 5, true, push::kConvNone}});
  for (const RecurrentStep& step : {RecurrentStep(), RecurrentStep::of_prompts()})
    for (const auto& [width, channels, has_bias, act] : shapes) {
      ir::Graph graph("conv", ir::Stage::kBoth);
      const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, channels}),
                 w = declare(graph, "const.w", kConstant, DType::kF32, {channels, width}),
                 bias = has_bias ? declare(graph, "const.bias", kConstant, DType::kF32, {channels}) : ir::kNoBuffer,
                 pos = declare(graph, "request.pos", kRequest, DType::kI32, {ir::kTokens}),
                 slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
                 state = declare(graph, "state.s", kState, DType::kF32, {step.kEntries, width - 1, channels}),
                 runs = declare(graph, "request.runs", kRequest, DType::kU32, {step.kSlots, kStateRunWords}),
                 saved = declare(graph, "state.saved", kState, DType::kF32, {step.kSlots, step.kSaved, channels}),
                 y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, channels});
      auto& node = add_node(graph, ir::Op::SSM_CONV1D, {x, w, bias, pos, slot, state, runs, saved}, {y, state, saved});
      node.inplace = true;
      ir::set_attr(node, "width", width);
      ir::set_attr(node, "taps", width - 1);
      ir::set_attr(node, "act", act);
      expect_same(ir::Op::SSM_CONV1D, graph, step.n(),
                  {{"act.x", bytes_of(random_values(step.n() * channels, rng_))},
                   {"const.w", bytes_of(random_values(channels * width, rng_))},
                   {"const.bias", bytes_of(random_values(channels, rng_))},
                   {"request.pos", bytes_of(step.positions)},
                   {"request.slot", bytes_of(step.slots)},
                   {"state.s", bytes_of(random_values(step.kEntries * (width - 1) * channels, rng_))},
                   {"request.runs", bytes_of(step.runs)},
                   {"state.saved", bytes_of(random_values(step.kSlots * step.kSaved * channels, rng_))}},
                  {"act.y", "state.s", "state.saved"});
    }
}

TEST_P(TierOtherOps, GuessesOfADeltaNet) {
  const RecurrentStep step;
  struct Shape {
    std::uint32_t n_k, n_v, k_dim, v_dim, tiled;
  };
  std::vector<Shape> shapes{{2, 4, 16, 8, 0}, {2, 4, 128, 128, 1}, {1, 3, 48, 40, 0}, {2, 2, 100, 33, 1}};
  // T1 and T2 take states of at most 128 rows.
  if (is_cuda()) shapes.insert(shapes.end(), {{1, 2, 160, 40, 0}, {2, 4, 300, 7, 1}});
  for (const Shape& s : shapes) {
    const std::uint32_t columns = 2 * s.n_k * s.k_dim + s.n_v * s.v_dim, width = columns + 2 * s.n_v,
                        state_size = s.n_v * s.k_dim * s.v_dim;
    ir::Graph graph("delta", ir::Stage::kBoth);
    const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, columns}),
               beta = declare(graph, "act.beta", kActivation, DType::kF32, {ir::kTokens, s.n_v}),
               alpha = declare(graph, "act.alpha", kActivation, DType::kF32, {ir::kTokens, s.n_v}),
               a = declare(graph, "const.a", kConstant, DType::kF32, {s.n_v}),
               dt = declare(graph, "const.dt", kConstant, DType::kF32, {s.n_v}),
               pos = declare(graph, "request.pos", kRequest, DType::kI32, {ir::kTokens}),
               slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
               state = declare(graph, "state.s", kState, DType::kF32, {step.kEntries, s.n_v, s.k_dim, s.v_dim}),
               runs = declare(graph, "request.runs", kRequest, DType::kU32, {step.kSlots, kStateRunWords}),
               saved = declare(graph, "state.saved", kState, DType::kF32, {step.kSlots, 2, step.kSaved, width}),
               y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, s.n_v * s.v_dim});
    auto& node = add_node(graph, ir::Op::SSM_DELTA_NET, {x, beta, alpha, a, dt, pos, slot, state, runs, saved},
                          {y, state, saved});
    node.inplace = true;
    for (const auto& [name, value] : {std::pair("n_k_heads", s.n_k),
                                      {"n_v_heads", s.n_v},
                                      {"k_dim", s.k_dim},
                                      {"v_dim", s.v_dim},
                                      {"tiled", s.tiled}})
      ir::set_attr(node, name, value);
    ir::set_attr(node, "eps", 1e-6f);
    expect_same(ir::Op::SSM_DELTA_NET, graph, step.n(),
                {{"act.x", bytes_of(random_values(step.n() * columns, rng_))},
                 {"act.beta", bytes_of(random_values(step.n() * s.n_v, rng_))},
                 {"act.alpha", bytes_of(random_values(step.n() * s.n_v, rng_))},
                 {"const.a", bytes_of(std::vector(s.n_v, -0.3f))},
                 {"const.dt", bytes_of(random_values(s.n_v, rng_))},
                 {"request.pos", bytes_of(step.positions)},
                 {"request.slot", bytes_of(step.slots)},
                 {"state.s", bytes_of(random_values(step.kEntries * state_size, rng_))},
                 {"request.runs", bytes_of(step.runs)},
                 {"state.saved", bytes_of(random_values(step.kSlots * 2 * step.kSaved * width, rng_))}},
                {"act.y", "state.s", "state.saved"});
  }
}

TEST_P(TierOtherOps, GuessesOfAScan) {
  struct Shape {
    std::uint32_t n_heads, n_groups, head_dim, state_dim;
  };
  for (const RecurrentStep& step : {RecurrentStep(), RecurrentStep::of_prompts()})
    for (const Shape& s : {Shape{2, 1, 8, 16}, {4, 2, 64, 128}, {3, 3, 40, 33}, {2, 1, 33, 100}, {1, 1, 7, 256}}) {
      const std::uint32_t inner = s.n_heads * s.head_dim, columns = inner + 2 * s.n_groups * s.state_dim,
                          width = columns + s.n_heads;
      ir::Graph graph("scan", ir::Stage::kBoth);
      const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, columns}),
                 dt = declare(graph, "act.dt", kActivation, DType::kF32, {ir::kTokens, s.n_heads}),
                 a = declare(graph, "const.a", kConstant, DType::kF32, {s.n_heads, 1}),
                 dt_bias = declare(graph, "const.dt_bias", kConstant, DType::kF32, {s.n_heads}),
                 d = declare(graph, "const.d", kConstant, DType::kF32, {s.n_heads, 1}),
                 pos = declare(graph, "request.pos", kRequest, DType::kI32, {ir::kTokens}),
                 slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
                 state = declare(graph, "state.s", kState, DType::kF32,
                                 {step.kEntries, s.n_heads, s.state_dim, s.head_dim}),
                 runs = declare(graph, "request.runs", kRequest, DType::kU32, {step.kSlots, kStateRunWords}),
                 saved = declare(graph, "state.saved", kState, DType::kF32, {step.kSlots, 2, step.kSaved, width}),
                 y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, inner});
      auto& node =
          add_node(graph, ir::Op::SSM_SCAN, {x, dt, a, dt_bias, d, pos, slot, state, runs, saved}, {y, state, saved});
      node.inplace = true;
      ir::set_attr(node, "n_heads", s.n_heads);
      ir::set_attr(node, "n_groups", s.n_groups);
      ir::set_attr(node, "head_dim", s.head_dim);
      ir::set_attr(node, "state_dim", s.state_dim);
      expect_same(ir::Op::SSM_SCAN, graph, step.n(),
                  {{"act.x", bytes_of(random_values(step.n() * columns, rng_))},
                   {"act.dt", bytes_of(random_values(step.n() * s.n_heads, rng_))},
                   {"const.a", bytes_of(std::vector(s.n_heads, -0.3f))},
                   {"const.dt_bias", bytes_of(random_values(s.n_heads, rng_))},
                   {"const.d", bytes_of(random_values(s.n_heads, rng_))},
                   {"request.pos", bytes_of(step.positions)},
                   {"request.slot", bytes_of(step.slots)},
                   {"state.s", bytes_of(random_values(step.kEntries * inner * s.state_dim, rng_))},
                   {"request.runs", bytes_of(step.runs)},
                   {"state.saved", bytes_of(random_values(step.kSlots * 2 * step.kSaved * width, rng_))}},
                  {"act.y", "state.s", "state.saved"});
    }
}

// The gate before and after the norm, with the same weights for all groups and with weights of each group. Groups are
// smaller and larger than what half a warp holds, and rows have more parts than a workgroup has half warps.
TEST_P(TierOtherOps, NormsWithAGate) {
  struct Shape {
    std::uint32_t d, group;
    bool gate_first, has_own_weights, is_in_place;
  };
  std::vector<Shape> shapes{
      {96, 32, false, false, false}, {40 * 128, 128, false, false, true}, {600, 600, false, false, false}};
  // T1 and T2 gate after the norm, with one group's weights.
  if (is_cuda())
    shapes.insert(shapes.end(), {{96, 32, true, true, false},
                                 {7, 7, true, true, true},
                                 {3072, 3072, true, true, false},
                                 {4 * 1280, 1280, true, true, true},
                                 {70 * 200, 200, true, false, false},
                                 {35 * 300, 300, false, true, true}});
  for (const std::uint32_t n : {1u, 5u})
    for (const Shape& s : shapes) {
      const std::uint32_t n_weights = s.has_own_weights ? s.d / s.group : 1;
      ir::Graph graph("norm", ir::Stage::kBoth);
      const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, s.d}),
                 z = declare(graph, "act.z", kActivation, DType::kF32, {ir::kTokens, s.d}),
                 w = declare(graph, "const.w", kConstant, DType::kF32, {n_weights, s.group}),
                 y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, s.d});
      auto& node = add_node(graph, ir::Op::SSM_GATED_NORM, {x, z, w}, {s.is_in_place ? x : y});
      node.inplace = s.is_in_place;
      ir::set_attr(node, "eps", 1e-5f);
      ir::set_attr(node, "group", s.group);
      ir::set_attr(node, "gate_first", std::uint32_t{s.gate_first});
      expect_same(ir::Op::SSM_GATED_NORM, graph, n,
                  {{"act.x", bytes_of(random_values(n * s.d, rng_))},
                   {"act.z", bytes_of(random_values(n * s.d, rng_))},
                   {"const.w", bytes_of(random_values(n_weights * s.group, rng_))}},
                  {s.is_in_place ? "act.x" : "act.y"});
    }
}

TEST_P(TierOtherOps, LayerNorms) {
  for (const std::uint32_t d : {1u, 15u, 256u, 257u, 2000u, 4096u, 9001u})
    for (const bool has_b : {false, true})
      for (const std::uint32_t n : {1u, 6u}) {
        const bool is_in_place = n == 6;
        ir::Graph graph("norm", ir::Stage::kBoth);
        const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, d}),
                   w = declare(graph, "const.w", kConstant, DType::kF32, {d}),
                   b = has_b ? declare(graph, "const.b", kConstant, DType::kF32, {d}) : ir::kNoBuffer,
                   y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, d});
        auto& node = add_node(graph, ir::Op::LAYER_NORM, {x, w, b}, {is_in_place ? x : y});
        node.inplace = is_in_place;
        ir::set_attr(node, "eps", 1e-5f);
        expect_same(ir::Op::LAYER_NORM, graph, n,
                    {{"act.x", bytes_of(random_values(n * d, rng_))},
                     {"const.w", bytes_of(random_values(d, rng_))},
                     {"const.b", bytes_of(random_values(d, rng_))}},
                    {is_in_place ? "act.x" : "act.y"});
      }
}

TEST_P(TierOtherOps, ValuesByThemselves) {
  for (const std::uint32_t width : {1u, 33u, 1100u})
    for (const std::uint32_t n : {1u, 8u, 21u})
      for (const ir::Op op : {ir::Op::MUL, ir::Op::RELU2, ir::Op::GELU}) {
        auto values = random_values(n * width, rng_);
        values[0] = -0.0f;
        if (width > 4) values[1] = 1e30f, values[2] = -1e30f, values[3] = 1e-40f;
        ir::Graph graph("values", ir::Stage::kBoth);
        const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, width}),
                   other = declare(graph, "act.other", kActivation, DType::kF32, {ir::kTokens, width}),
                   y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, width});
        if (op == ir::Op::MUL)
          add_node(graph, op, {x, other}, {y});
        else
          add_node(graph, op, {x}, {y});
        expect_same(op, graph, n,
                    {{"act.x", bytes_of(values)}, {"act.other", bytes_of(random_values(n * width, rng_))}}, {"act.y"});
      }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierOtherOps, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierOtherOps);

}  // namespace
}  // namespace zinc_rt
