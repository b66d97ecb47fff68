// What may never change a bit: fusion, aliasing, chunking, slots, threads, mapping, the stage's graph.
#include <cstring>
#include <tuple>

#include "base/kv_type.h"
#include "model_fixture.h"

namespace zinc_rt {
namespace {

class Bits : public ::testing::TestWithParam<std::string> {
 protected:
  const std::vector<std::int32_t> ids_ = prompt(70);
  Outcome with(const ExecutorOptions& options, std::size_t chunk = 70) {
    const auto executor = open(GetParam(), options);
    return executor ? run_prompt(*executor, ids_, chunk) : Outcome{};
  }
  Outcome reference() {
    auto outcome = with(small_options());
    EXPECT_EQ(outcome.tokens.size(), 70u);
    for (const float logit : outcome.logits) EXPECT_TRUE(std::isfinite(logit));
    return outcome;
  }
};

TEST_P(Bits, FusionsAloneAndTogether) {
  const auto wanted = reference();
  for (const auto* fusion : {"0", "qkv", "gate_up", "rope_kv", "moe", "residual", "residual,rope_kv"}) {
    auto options = small_options();
    options.fusion = fusion;
    EXPECT_EQ(with(options), wanted) << fusion;
  }
}

TEST_P(Bits, Aliasing) {
  auto options = small_options();
  options.aliasing = false;
  EXPECT_EQ(with(options), reference());
}

TEST_P(Bits, Chunks) {
  const auto wanted = reference();
  for (const std::size_t chunk : {1, 7, 16, 64}) EXPECT_EQ(with(small_options(), chunk), wanted) << chunk;
}

TEST_P(Bits, ThreadsAndMapping) {
  const auto wanted = reference();
  for (const int threads : {1, 3}) {
    auto options = small_options();
    options.threads = threads;
    options.mmap = threads == 1;
    EXPECT_EQ(with(options), wanted) << threads;
  }
}

TEST_P(Bits, FloatActivationsHoldUnderFusionToo) {
  auto options = small_options();
  options.activations = Activations::kF32;
  const auto fused = with(options);
  options.fusion = "0";
  EXPECT_EQ(with(options, 16), fused);
}

// Slots in one step, prefill beside decode, on pages anywhere.
TEST_P(Bits, SlotsInOneStepAreAsAlone) {
  const auto executor = open(GetParam());
  ASSERT_NE(executor, nullptr);
  const auto a = prompt(40, 2), b = prompt(40, 3), c = prompt(40, 4);
  const auto alone_a = run_prompt(*executor, a, 40, 0, 0), alone_b = run_prompt(*executor, b, 40, 1, 8),
             alone_c = run_prompt(*executor, c, 40, 2, 16);
  const std::vector<std::uint32_t> pages_a{23, 1, 9}, pages_b{0, 17, 4}, pages_c{2, 22, 3};
  Outcome got_a, got_b, got_c;
  std::size_t at_a = 0, at_b = 0, at_c = 0;
  std::mt19937 rng(5);
  while (at_a < 40 || at_b < 40 || at_c < 40) {
    const auto take = [&](std::size_t at) { return std::min<std::size_t>(40 - at, rng() % 3 == 0 ? 13 : 1); };
    const std::size_t n_a = take(at_a), n_b = take(at_b), n_c = take(at_c);
    TestStep input;
    append(input, b, at_b, n_b, 1, pages_b);  // slots in an order of no meaning
    append(input, a, at_a, n_a, 0, pages_a);
    append(input, c, at_c, n_c, 2, pages_c);
    Outcome both;
    step(*executor, std::move(input), both);
    const std::size_t v = executor->config().vocab_size;
    const auto share = [&](std::size_t first, std::size_t n, Outcome& to) {
      to.logits.insert(to.logits.end(), both.logits.begin() + std::ptrdiff_t(first * v),
                       both.logits.begin() + std::ptrdiff_t((first + n) * v));
      to.tokens.insert(to.tokens.end(), both.tokens.begin() + std::ptrdiff_t(first),
                       both.tokens.begin() + std::ptrdiff_t(first + n));
    };
    share(0, n_b, got_b), share(n_b, n_a, got_a), share(n_b + n_a, n_c, got_c);
    at_a += n_a, at_b += n_b, at_c += n_c;
  }
  EXPECT_EQ(got_a, alone_a);
  EXPECT_EQ(got_b, alone_b);
  EXPECT_EQ(got_c, alone_c);
}

TEST_P(Bits, DecodeGraphIsPrefillGraph) {
  const auto executor = open(GetParam());
  ASSERT_NE(executor, nullptr);
  EXPECT_NE(executor->batch(ir::Stage::kDecode).packets.size(), 0u);
  const auto ids = prompt(20);
  const auto by_prefill = run_prompt(*executor, ids, 20);
  Outcome by_decode;
  for (std::size_t i = 0; i < 20; ++i) {  // a step of one token takes the decode graph
    TestStep input;
    append(input, ids, i, 1, 0, pages_from(0));
    step(*executor, std::move(input), by_decode);
  }
  EXPECT_EQ(by_decode, by_prefill);
}

TEST_P(Bits, LogitsOfTheLastTokenOnlyAreTheSame) {
  const auto executor = open(GetParam());
  ASSERT_NE(executor, nullptr);
  const auto all = run_prompt(*executor, ids_, 70);
  TestStep input;
  append(input, ids_, 0, 70, 0, pages_from(0), false);
  Outcome last;
  step(*executor, std::move(input), last);
  ASSERT_EQ(last.tokens.size(), 1u);
  EXPECT_EQ(last.tokens[0], all.tokens.back());
  EXPECT_EQ(std::memcmp(last.logits.data(), all.logits.data() + 69 * last.logits.size(), last.logits.size() * 4), 0);
}

TEST_P(Bits, KvTypesRun) {
  const auto wanted = reference();
  for (const KvType& type : kv_types()) {
    auto options = small_options();
    options.kv_type = find_kv_type(type.name);
    const auto executor = RingExecutor::open(model_path(GetParam()), options);
    if (!executor) {
      const auto& why = executor.error().message;  // by the width of a row where that is no whole block
      EXPECT_TRUE(why.contains("wants head_dim") || why.contains("wants multiples of")) << why;
      continue;
    }
    const auto got = run_prompt(**executor, ids_, 70);
    ASSERT_EQ(got.logits.size(), wanted.logits.size());
    double dot = 0, norm_a = 0, norm_b = 0;
    for (std::size_t i = 0; i < got.logits.size(); ++i)
      dot += double(got.logits[i]) * wanted.logits[i], norm_a += double(got.logits[i]) * got.logits[i],
          norm_b += double(wanted.logits[i]) * wanted.logits[i];
    EXPECT_GT(dot / std::sqrt(norm_a * norm_b), type.v == DType::kR4 ? 0.9 : 0.99) << type.name;
    for (const std::size_t chunk : {1, 7, 16, 64})
      EXPECT_EQ(run_prompt(**executor, ids_, chunk), got) << type.name << " in chunks of " << chunk;
    for (const auto& [fusion, kernels, threads] : {std::tuple{"0", "auto", 2}, {"1", "ref", 1}, {"1", "auto", 3}}) {
      options.fusion = fusion, options.cpu_kernels = kernels, options.threads = threads;
      EXPECT_EQ(with(options), got) << type.name << ", fusion " << fusion << ", kernels " << kernels << ", " << threads
                                    << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Bits, ::testing::ValuesIn(models()), [](const auto& info) {
  auto name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
