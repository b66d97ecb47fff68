// What a step refuses, with both numbers and before anything has run; what the plan promises; the hidden tap.
#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "executor/rope_table.h"
#include "kernels/cpu/ops.h"
#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class Limits : public ::testing::Test {
 protected:
  void SetUp() override {
    executor_ = open("llama_spm-f32");
    ASSERT_NE(executor_, nullptr);
  }
  TestStep good(std::size_t n = 5) const {
    TestStep input;
    append(input, prompt(128), 0, n, 0, pages_from(0));
    return input;
  }
  // The change is refused with all of the words; the state is as before.
  void refused(const std::function<void(TestStep&)>& change, const std::vector<std::string>& words) {
    auto input = good();
    change(input);
    const auto before = executor_->ring().stats().submissions;
    refused(input.view(), words);
    EXPECT_EQ(executor_->ring().stats().submissions, before);
  }
  void refused(const StepInput& input, const std::vector<std::string>& words) {
    StepOutput output;
    const auto status = executor_->step(input, output);
    ASSERT_FALSE(status) << words[0];
    EXPECT_EQ(status.error().code, StatusCode::kInvalidArgument);
    for (const auto& word : words) EXPECT_THAT(status.error().message, HasSubstr(word));
    EXPECT_FALSE(executor_->hidden(input, 0));
  }
  std::unique_ptr<RingExecutor> executor_;
};

TEST_F(Limits, GoodInputRuns) {
  StepOutput output;
  output.tokens = {1, 2, 3};  // of an earlier step
  EXPECT_TRUE(executor_->step(good().view(), output));
  EXPECT_EQ(output.tokens.size(), 5u);
}
TEST_F(Limits, LogprobsOfAnExecutorWithoutThem) {
  EXPECT_FALSE(executor_->info().has_logprobs);  // T-CPU leaves them to the host
  refused([](TestStep& in) { in.outputs[1].n_logprobs = 1; }, {"logprobs"});
}
TEST(LimitsOfLogprobs, AreChecked) {
  const auto executor = open("llama_spm-f32");
  StepCheck check({.sizes = executor->prepared().sizes, .n_pages = 8, .vocab_size = 448, .has_logprobs = true});
  const auto message_of = [&](const std::function<void(OutputRow&)>& change) {
    TestStep input;
    append(input, prompt(128), 0, 5, 0, pages_from(0));
    change(input.outputs[2]);
    const auto status = check.check(input.view());
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message_of([](OutputRow& row) { row.n_logprobs = kMostLogprobs, row.scored = 447; }), "");
  EXPECT_THAT(message_of([](OutputRow& row) { row.n_logprobs = kMostLogprobs + 1; }),
              AllOf(HasSubstr("129"), HasSubstr("128")));
  for (const std::int32_t token : {448, -2})
    EXPECT_THAT(message_of([&](OutputRow& row) { row.n_logprobs = 0, row.scored = token; }),
                AllOf(HasSubstr(std::to_string(token)), HasSubstr("448")));
  EXPECT_THAT(message_of([](OutputRow& row) { row.n_logprobs = 0, row.is_processed = true; }), HasSubstr("processed"));
}
TEST_F(Limits, Tokens) {
  refused([](TestStep& in) { in = {}; }, {"0 tokens", "128"});
  refused([](TestStep& in) { in.token_ids.resize(129), in.positions.resize(129), in.slots.resize(129); },
          {"129", "128"});
  refused([](TestStep& in) { in.positions.pop_back(); }, {"5 tokens", "4 positions"});
  refused([](TestStep& in) { in.slots.push_back(0); }, {"5 tokens", "6 slots"});
  refused([](TestStep& in) { in.token_ids[2] = 448; }, {"448", "index 2", "448"});
  refused([](TestStep& in) { in.token_ids[2] = -1; }, {"-1", "448"});
}
TEST_F(Limits, Positions) {
  refused([](TestStep& in) { in.positions[4] = 128; }, {"128", "128"});
  refused([](TestStep& in) { in.positions[0] = -1; }, {"-1", "128"});
  refused([](TestStep& in) { in.positions[3] = 2; }, {"position 2 after 2"});
  refused([](TestStep& in) { in.page_tables[0].resize(1), in.positions[4] = 16; }, {"position 16", "1 pages"});
}
TEST_F(Limits, SlotsAndPages) {
  refused([](TestStep& in) { in.slots[4] = 1; }, {"slot 1", "1 have"});
  refused([](TestStep& in) { in.slots[4] = -1; }, {"slot -1"});
  refused([](TestStep& in) { in.page_tables.resize(4); }, {"4 page tables", "3 slots"});
  refused([](TestStep& in) { in.page_tables[0][0] = 24; }, {"page 24 of 24 in slot 0"});
  refused(
      [](TestStep& in) {
        in.page_tables.push_back(pages_from(8));
        in.slots = {0, 1, 1, 0, 0};
        in.positions = {0, 0, 1, 1, 2};
      },
      {"slot 0", "together"});
}
// A view that promises more than its memory holds.
TEST_F(Limits, PageTableViews) {
  auto test = good();
  auto input = test.view();
  input.page_tables.ids = input.page_tables.ids.first(7);
  refused(input, {"1 page tables of 8 pages in a memory of 7"});
  input = test.view();
  const std::vector<std::uint32_t> counts{9};
  input.page_tables.counts = counts;
  refused(input, {"slot 0 has 9 pages in a table of 8"});
  input = test.view();
  input.page_tables.width = UINT32_MAX;
  refused(input, {"4294967295"});
  input = test.view();
  input.page_tables = {};
  refused(input, {"slot 0 at index 0, 0 have page tables"});
}
// What a step does not read is nobody's to check: a scheduler's table holds rows and pages of other steps.
TEST_F(Limits, OnlyWhatIsReadIsChecked) {
  auto test = good();
  test.page_tables[0] = {3, 99};
  test.page_tables.push_back({77, 78, 79});
  test.rope_variants = {0, 9};
  Outcome got, wanted;
  step(*executor_, test, got);
  step(*executor_, good(), wanted);
  EXPECT_EQ(got, wanted);
}
TEST_F(Limits, Outputs) {
  refused([](TestStep& in) { in.outputs[0].token_index = 5; }, {"output", "5 of 5"});
}
TEST_F(Limits, Histories) {
  const std::vector<std::int32_t> history(129), whole(128);
  refused([&](TestStep& in) { in.outputs[0].history = history; }, {"129", "128"});
  refused([&](TestStep& in) { in.outputs[0].history = whole, in.outputs[0].n_prompt = 129; }, {"129", "128"});
  std::vector<std::vector<std::int32_t>> of_rows(5, whole);
  refused(  // 5 x 128 of 3 x 128
      [&](TestStep& in) {
        for (std::size_t i = 0; i < in.outputs.size(); ++i) in.outputs[i].history = of_rows[i];
      },
      {"512", "384"});
}

// Rows that verify a draft read one history, each a token more of it than the row before. That counts once, and each row
// is picked as it is with a history of its own.
TEST_F(Limits, RowsOfASlotShareAHistoryAndBiases) {
  auto own = good(), shared = good();
  std::vector<std::int32_t> history(128);
  for (std::size_t i = 0; i < history.size(); ++i) history[i] = static_cast<std::int32_t>(i);
  const std::vector<TokenBias> bias{{7, 3.0f}, {9, -3.0f}};
  const std::vector<std::int32_t> banned{11, 12};
  std::vector<std::vector<std::int32_t>> histories;
  std::vector<std::vector<TokenBias>> biases(own.outputs.size(), bias);
  histories.reserve(own.outputs.size());
  for (std::size_t i = 0; i < own.outputs.size(); ++i) {
    const auto part = std::span(history).first(history.size() - own.outputs.size() + i);
    histories.emplace_back(part.begin(), part.end());
    histories.back().resize(60 + i);  // so that histories of their own fit too
    OutputRow &a = own.outputs[i], &b = shared.outputs[i];
    a.history = histories.back(), b.history = std::span(history).first(60 + i);
    a.bias = biases[i], b.bias = bias;
    for (OutputRow* row : {&a, &b}) {
      row->sampling.repetition_penalty = 1.5f, row->sampling.presence_penalty = 0.5f, row->n_prompt = 20;
      if (i < 2) row->banned = banned;
    }
  }
  Outcome got, wanted;
  step(*executor_, shared, got);
  step(*executor_, own, wanted);
  EXPECT_EQ(got, wanted);
  for (OutputRow& row : shared.outputs) row.history = history;
  Outcome whole;
  step(*executor_, shared, whole);
  EXPECT_EQ(whole.tokens.size(), shared.outputs.size());
}

TEST_F(Limits, Biases) {
  const std::vector<TokenBias> bias(1025);
  std::vector<std::vector<TokenBias>> of_rows(5, std::vector<TokenBias>(2048));
  const std::vector<std::int32_t> banned(1024);
  refused([&](TestStep& in) { in.outputs[0].bias = bias, in.outputs[0].banned = banned; }, {"1025", "1024", "2048"});
  refused(  // 5 x 2048 of 3 x 2048
      [&](TestStep& in) {
        for (std::size_t i = 0; i < in.outputs.size(); ++i) in.outputs[i].bias = of_rows[i];
      },
      {"8192", "6144"});
}
TEST_F(Limits, BiasesAreOfTheirRowAlone) {
  const std::vector<TokenBias> bias{{7, 1e30f}, {-1, 1e30f}, {1 << 30, 1e30f}};
  const std::vector<std::int32_t> banned{7, 8};
  auto biased = good();
  biased.outputs[1].bias = bias;
  biased.outputs[2].bias = bias, biased.outputs[2].banned = banned;
  Outcome got, wanted;
  step(*executor_, biased, got);
  step(*executor_, good(), wanted);
  wanted.tokens[1] = 7;
  EXPECT_NE(got.tokens[2], 7);
  wanted.tokens[2] = got.tokens[2];
  EXPECT_EQ(got, wanted);
}

TEST_F(Limits, MoreOutputRowsThanAGroupRunInGroups) {
  const auto ids = prompt(128);
  const auto whole = run_prompt(*executor_, ids, 128);  // 128 rows, 64 a group
  EXPECT_EQ(whole.tokens.size(), 128u);
  EXPECT_EQ(run_prompt(*executor_, ids, 64), whole);
}

// A device would have to bring rows that nobody reads to the host, in each step.
TEST_F(Limits, OnlyRowsThatWantLogitsAreGiven) {
  const auto ids = prompt(80);
  const auto whole = run_prompt(*executor_, ids, 80);
  TestStep input;
  append(input, ids, 0, 80, 0, pages_from(0));
  const std::set<std::uint32_t> wanted = {0, 1, 5, 62, 63, 64, 79};  // across the end of a group of 64
  for (std::uint32_t i = 0; i < 80; ++i) input.outputs[i].wants_logits = wanted.contains(i);
  const std::size_t width = whole.logits.size() / 80;
  std::set<std::uint32_t> given;
  input.on_logits = [&](std::uint32_t first, std::span<const float> logits) {
    ASSERT_EQ(logits.size() % width, 0u);
    for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_EQ(logits[i], whole.logits[first * width + i]);
    for (std::uint32_t i = 0; i < logits.size() / width; ++i) EXPECT_TRUE(given.insert(first + i).second);
  };
  StepOutput output;
  ASSERT_TRUE(executor_->step(input.view(), output));
  EXPECT_EQ(given, wanted);
  EXPECT_EQ(output.tokens, whole.tokens);
}

TEST_F(Limits, OptionsAreChecked) {
  const auto error = [](const std::function<void(ExecutorOptions&)>& change) {
    auto options = small_options();
    change(options);
    const auto executor = open_executor(model_path("llama_spm-f32"), options);
    return executor ? std::string("opened") : executor.error().message;
  };
  EXPECT_THAT(error([](auto& o) { o.max_slots = 0; }), HasSubstr("max_slots 0"));
  EXPECT_THAT(error([](auto& o) { o.max_slots = 5000; }), HasSubstr("4096"));
  EXPECT_THAT(error([](auto& o) { o.max_context = 1 << 30; }), HasSubstr("1073741824"));
  EXPECT_THAT(error([](auto& o) { o.kv_type = find_kv_type("k8v4"); }), HasSubstr(", r8 wants multiples of 64"));
  EXPECT_THAT(error([](auto& o) { o.fusion = "qkv,glue"; }), HasSubstr("glue"));
  EXPECT_THAT(error([](auto& o) { o.tier = "t9"; }), HasSubstr("t9"));
  EXPECT_THAT(error([](auto& o) { o.kv_pages = 1u << 31; }), HasSubstr("cannot allocate"));
}

TEST_F(Limits, PlanIsWhatIsAllocated) {
  for (const auto& model : models())
    for (const bool mmap : {true, false})
      for (const bool aliasing : {true, false}) {
        auto options = small_options();
        options.max_slots = aliasing ? 64 : 3;
        options.repack = false;
        options.mmap = mmap;
        options.aliasing = aliasing;
        const auto executor = open(model, options);
        ASSERT_NE(executor, nullptr);
        EXPECT_EQ(executor->plan().allocated_bytes(), executor->allocated_bytes()) << model;
        EXPECT_EQ(executor->plan().mapped_bytes() > 0, mmap);
        EXPECT_EQ(executor->plan().find("kv_pages")->bytes, executor->info().page_bytes * executor->info().n_pages);
        // Of the file's tensors all but the blocks that are not run are there, once.
        std::uint64_t planned = 0, wanted = 0;
        for (const auto& region : executor->plan().regions)
          if (region.name.starts_with("weights.")) planned += region.bytes;
        for (const Tensor& tensor : executor->weights().all())
          if (!tensor.name.starts_with("blk." + std::to_string(executor->config().n_layers) + "."))
            wanted += mem::align_up(tensor.computed_bytes(), 256);
        EXPECT_LE(planned, wanted) << model;
        EXPECT_GE(planned + 256 * executor->weights().all().size(), wanted) << model;
      }
}

TEST_F(Limits, HiddenTap) {
  const auto& config = executor_->config();
  auto test = good(20);
  const auto& input = test.view();
  const std::size_t d = config.model_dim, v = config.vocab_size;
  Outcome outcome;
  step(*executor_, test, outcome);
  const auto norm_w = executor_->weights().find("output_norm.weight")->data;
  const auto head_w = executor_->weights().find("output.weight")->data;
  const auto last = executor_->hidden(input, int(config.n_layers) - 1);
  ASSERT_TRUE(last);
  ASSERT_EQ(last->size(), 20 * d);
  for (std::size_t t = 0; t < 20; ++t) {
    std::vector<float> norm(d), logits(v), scratch(d);
    cpu::rms_norm_row(last->data() + t * d, reinterpret_cast<const float*>(norm_w.data()), norm.data(), d, d,
                      float(config.norm_eps));
    cpu::linear_rows({head_w.data(), DType::kF32, false, std::uint32_t(v), nullptr, norm.data(), DType::kF32, 0,
                      std::uint32_t(d), 1, logits.data(), v, scratch.data()},
                     0, std::uint32_t(v));
    EXPECT_EQ(std::memcmp(logits.data(), outcome.logits.data() + t * v, v * 4), 0) << "token " << t;
  }
  const auto embedded = executor_->hidden(input, -1);
  ASSERT_TRUE(embedded);
  const auto* table = reinterpret_cast<const float*>(executor_->weights().find("token_embd.weight")->data.data());
  for (std::size_t t = 0; t < 20; ++t)
    EXPECT_EQ(std::memcmp(embedded->data() + t * d, table + std::size_t(input.token_ids[t]) * d, d * 4), 0);
  EXPECT_NE(*executor_->hidden(input, 0), *embedded);
  auto options = small_options();
  options.fusion = "0";
  options.aliasing = false;
  const auto plain = open("llama_spm-f32", options);
  for (int layer = -1; layer < int(config.n_layers); ++layer)
    EXPECT_EQ(*plain->hidden(input, layer), *executor_->hidden(input, layer)) << layer;
  EXPECT_FALSE(executor_->hidden(input, -2));
  EXPECT_THAT(executor_->hidden(input, int(config.n_layers)).error().message,
              HasSubstr(std::to_string(config.n_layers)));
}

TEST_F(Limits, NullTierRunsAndComputesNothing) {
  auto options = small_options();
  options.tier = "null";
  const auto executor = open("llama_spm-f32", options);
  ASSERT_NE(executor, nullptr);
  Outcome outcome;
  step(*executor, good(), outcome);
  EXPECT_EQ(outcome.tokens.size(), 5u);
  for (const float logit : outcome.logits) EXPECT_EQ(logit, 0.0f);
}

TEST(RopeTable, IsTheCosineAndSineInDouble) {
  const arch::RopeTable table{"rope", {{{1.0, 0.01}, 1.5}, {{0.5, 0.25}, 2}}};
  std::vector<float> out(2 * 3000 * 4);
  fill_rope_table(table, 3000, out);
  for (const std::size_t v : {0u, 1u})
    for (const std::size_t p : {0u, 1u, 2999u})
      for (const std::size_t i : {0u, 1u}) {
        const auto& angles = table.variants[v];
        const double angle = double(p) * angles.inverse_frequencies[i];
        const std::size_t at = (v * 3000 + p) * 4 + 2 * i;
        EXPECT_EQ(out[at], float(angles.magnitude * std::cos(angle)));
        EXPECT_EQ(out[at + 1], float(angles.magnitude * std::sin(angle)));
      }
}

// A step takes so many tokens as the tier likes best, where nobody asks for another number.
TEST_F(Limits, TheChunkIsTheTiers) {
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->priority < 0 || !tier->unavailable_reason().empty()) continue;
    auto options = small_options();
    options.tier = tier->name;
    options.max_context = 1024;
    const auto executor = open("llama3_tied_rope-f16", options);
    ASSERT_NE(executor, nullptr);
    // T-CUDA would like 2,048, more than a slot holds.
    EXPECT_EQ(executor->info().chunk_cap, tier->name == "t_cuda" ? 1024u : 256u) << tier->name;
    options.chunk_cap = 100;
    const auto asked = open("llama3_tied_rope-f16", options);
    ASSERT_NE(asked, nullptr);
    EXPECT_EQ(asked->info().chunk_cap, 100u) << tier->name;
  }
}

}  // namespace
}  // namespace zinc_rt
