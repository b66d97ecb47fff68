// A model on the first two devices of each tier that has several, under load: the bits are those of one device and of
// T-CPU, quotas, rates and shares are exact over both, and ledgers say each token. On T-CPU with a small model, elsewhere
// with SmolLM2-135M-Instruct as well, which scripts/demo.sh fetches (ZRT_DEMO_MODEL names another place).
#include <filesystem>
#include <iostream>

#include "engine_fixture.h"
#include "executor/registry.h"

namespace zinc_rt {
namespace {

using Clock = std::chrono::steady_clock;

struct TwoDevicesCase {
  std::string tier, model;  // "demo": SmolLM2
};
void PrintTo(const TwoDevicesCase& c, std::ostream* out) {
  *out << c.model << " on " << c.tier;
}

std::string file_of(const std::string& model) {
  if (model != "demo") return model_path(model);
  const char* path = std::getenv("ZRT_DEMO_MODEL");
  return path != nullptr ? path : ZRT_SOURCE_DIR "/.cache/zinc_rt/smollm2-135m-instruct.gguf";
}

std::unique_ptr<Executor> open_here(const std::string& model, const ExecutorOptions& options) {
  auto executor = open_executor(file_of(model), options);
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

class TwoDevices : public EngineTest, public ::testing::WithParamInterface<TwoDevicesCase> {
 protected:
  void SetUp() override {
    const auto tiers = executor_tiers();
    const auto& tier = std::ranges::find(tiers, GetParam().tier, [](const TierEntry& e) { return e.tier.name; })->tier;
    if (const auto reason = tier.unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto n = tier.n_devices(); n < 2)
      GTEST_SKIP() << "tier " << tier.name << " has " << n << " device here, 2 wanted";
    if (!std::filesystem::exists(file_of(GetParam().model)))
      GTEST_SKIP() << "no demo model (" << file_of(GetParam().model) << "); scripts/demo.sh fetches it";
  }
  // Slots are those of a device. Each step passes gate_.
  TestEngine start(const std::string& tier, std::vector<std::uint32_t> devices, std::uint32_t slots) {
    ExecutorOptions executor_options;
    executor_options.tier = tier;
    executor_options.max_slots = slots;
    executor_options.max_context = 128;
    EngineOptions options;
    options.devices = std::move(devices);
    auto probe = std::make_shared<Probe>();
    probe->before = [this](const StepInput&, std::uint64_t) {
      gate_.pass();
      return Status{};
    };
    return start_engine(GetParam().model, executor_options, options, std::move(probe), open_here);
  }
  TestEngine start_both(std::uint32_t slots) { return start(GetParam().tier, {0, 1}, slots); }

  static Stream submit(const Tenant& tenant, const Request& request) {
    auto stream = tenant.session()->stream(request);
    EXPECT_TRUE(stream) << (stream ? "" : stream.error().message);
    return std::move(*stream);
  }
  // Of both devices: what was generated on each, which is all of it together.
  static void expect_both_worked(const TestEngine& engine, std::uint64_t tokens) {
    ASSERT_TRUE(eventually([&] { return engine.stat("running") + engine.stat("waiting") == 0; }));
    expect_all_free(engine);
    const auto devices = engine.stats()["models"][0]["devices"];
    const auto first = devices[0]["generated_tokens"].get<std::uint64_t>();
    const auto second = devices[1]["generated_tokens"].get<std::uint64_t>();
    EXPECT_GT(first, 0u);
    EXPECT_GT(second, 0u);
    EXPECT_EQ(first + second, tokens);
    std::cout << "tokens of device 0: " << first << ", of device 1: " << second << std::endl;
  }
};

// Of prompts that begin alike and of others, greedy and drawn.
Request request_of(std::uint32_t i) {
  auto ids = prompt(20 + 7 * (i % 8), i);
  const auto beginning = prompt(20, 1000 + i % 4);
  if (i % 2 == 0) std::ranges::copy(beginning, ids.begin());
  auto request = token_request(std::move(ids), 8 + i % 9);
  request.seed = i;
  request.temperature = i % 3 == 0 ? 0 : 0.8f;
  request.repetition_penalty = i % 5 == 0 ? 1.2f : 1;
  return request;
}

TEST_P(TwoDevices, GiveTheHashesOfOneDeviceAndOfTCpu) {
  constexpr std::uint32_t kRequests = 128, kTenants = 16;
  const auto answers = [&](const TestEngine& engine) {
    std::vector<Completion> all;
    std::vector<Stream> streams;
    for (std::uint32_t i = 0; i < kRequests; ++i)
      streams.push_back(submit(engine.tenant("tenant " + std::to_string(i % kTenants)), request_of(i)));
    for (Stream& stream : streams) all.push_back(read(stream));
    return all;
  };
  const auto wanted = answers(start("t_cpu", {0}, 16));
  if (GetParam().tier != "t_cpu") {
    const auto one = answers(start(GetParam().tier, {0}, 16));
    ASSERT_EQ(one.size(), wanted.size());
    for (std::uint32_t i = 0; i < kRequests; ++i) EXPECT_EQ(one[i].logits_hashes, wanted[i].logits_hashes) << i;
  }
  const auto engine = start_both(16);
  const auto got = answers(engine);
  ASSERT_EQ(got.size(), kRequests);
  ASSERT_EQ(wanted.size(), kRequests);
  std::uint64_t tokens = 0;
  std::vector<std::uint64_t> generated(kTenants), prompted(kTenants);
  std::set<std::uint64_t> rows;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const Request request = request_of(i);
    EXPECT_EQ(got[i].token_ids, wanted[i].token_ids) << i;
    EXPECT_EQ(got[i].logits_hashes, wanted[i].logits_hashes) << i;
    EXPECT_EQ(got[i].logits_hashes.size(), request.max_tokens) << i;
    rows.insert(got[i].logits_hashes.begin(), got[i].logits_hashes.end());
    generated[i % kTenants] += request.max_tokens;
    prompted[i % kTenants] += request.token_ids->size();
    tokens += request.max_tokens;
  }
  expect_both_worked(engine, tokens);
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    const auto ledger = engine.tenant("tenant " + std::to_string(t)).ledger();
    EXPECT_EQ(ledger.tokens_generated, generated[t]);
    EXPECT_EQ(ledger.tokens_prompted, prompted[t]);
    EXPECT_EQ(ledger.requests_finished, kRequests / kTenants);
  }
  std::cout << tokens << " rows, " << rows.size() << " different hashes, all equal to T-CPU's" << std::endl;
}

TEST_P(TwoDevices, KeepATenantsSlotsAndPagesAtEachStep) {
  constexpr std::uint32_t kRequests = 48, kLength = 30, kTokens = 20;
  const auto engine = start_both(8);
  auto limited = quota("standard", 5);
  limited.max_kv_pages = 17;  // four pages a request: the fifth slot waits for pages now and again
  const auto tenant = engine.tenant("limited", limited), other = engine.tenant("other", quota("standard", 64));
  std::uint32_t most_slots = 0, most_pages = 0, n_steps = 0;
  std::mutex mutex;
  engine.probe->after = [&](const StepInput&, std::uint64_t) -> Status {
    const auto ledger = tenant.ledger();
    const std::lock_guard lock(mutex);
    ++n_steps;
    most_slots = std::max(most_slots, ledger.slots_now);
    most_pages = std::max(most_pages, ledger.kv_pages_now);
    return {};
  };
  std::vector<Stream> streams;
  for (std::uint32_t i = 0; i < 2 * kRequests; ++i)
    streams.push_back(submit(i % 2 == 0 ? tenant : other, token_request(prompt(kLength, i), kTokens)));
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), kTokens);
  expect_both_worked(engine, 2 * kRequests * kTokens);
  EXPECT_GE(most_slots, 4u);
  EXPECT_LE(most_slots, 5u);
  EXPECT_LE(most_pages, 17u);
  for (const auto& each : {tenant, other}) {
    const auto ledger = each.ledger();
    EXPECT_EQ(ledger.requests_finished, kRequests);
    EXPECT_EQ(ledger.tokens_generated, kRequests * kTokens);
    EXPECT_EQ(ledger.tokens_prompted, kRequests * kLength);
    EXPECT_EQ(ledger.slots_admitted - ledger.slots_preempted, kRequests);
  }
  EXPECT_LE(tenant.ledger().kv_pages_peak, 17u);
  std::cout << n_steps << " steps, at most " << most_slots << " of 5 slots and " << tenant.ledger().kv_pages_peak
            << " of 17 pages" << std::endl;
}

// A rate gives what its window of five seconds holds at once and then so much a second. What is in a slot when the
// window is empty may still take its token, or its prompt: that is the most by which the bound is passed.
TEST_P(TwoDevices, KeepATenantsRates) {
  constexpr std::uint32_t kSlots = 6, kLength = 40, kTokens = 30, kRequests = 60;
  constexpr double kWindow = 5, kDecode = 40, kPrefill = 120;
  for (const bool is_decode : {true, false}) {
    const auto engine = start_both(8);
    auto slow = quota("standard", kSlots);
    slow.decode_tokens_per_s = is_decode ? kDecode : 1e9;
    slow.prefill_tokens_per_s = is_decode ? 1e9 : kPrefill;
    auto tenant = engine.tenant("slow", slow);
    const double rate = is_decode ? kDecode : kPrefill;
    const double overdraft = kSlots * (is_decode ? 1 : kLength);
    // Of a request's tokens the first is its prompt's.
    const auto used = [&] {
      const auto ledger = tenant.ledger();
      return is_decode ? double(ledger.tokens_generated) - double(ledger.slots_admitted)
                       : double(ledger.tokens_prompted);
    };
    const auto began = Clock::now();
    double most_over = -1e9;
    bool is_limited = true;
    std::uint64_t n_steps = 0;
    std::mutex mutex;
    engine.probe->after = [&](const StepInput&, std::uint64_t) -> Status {
      const double tokens = used(), seconds = std::chrono::duration<double>(Clock::now() - began).count();
      const std::lock_guard lock(mutex);
      if (!is_limited) return {};
      ++n_steps;
      most_over = std::max(most_over, tokens - rate * (kWindow + seconds));
      return {};
    };
    std::vector<Stream> streams;
    for (std::uint32_t i = 0; i < kRequests; ++i)
      streams.push_back(submit(tenant, token_request(prompt(kLength, i), kTokens)));
    // The whole window is given, and it is used up long before all is done.
    EXPECT_TRUE(eventually([&] { return used() >= rate * kWindow; }));
    EXPECT_TRUE(eventually([&] { return used() >= rate * (kWindow + 0.5); }));
    EXPECT_LT(tenant.ledger().requests_finished, kRequests);
    {
      const std::lock_guard lock(mutex);
      is_limited = false;
      EXPECT_GT(n_steps, 0u);
      EXPECT_LE(most_over, overdraft);
      std::cout << (is_decode ? "decode" : "prefill") << ": at most " << most_over << " tokens over " << rate * kWindow
                << " and " << rate << " a second, " << overdraft << " allowed" << std::endl;
    }
    slow.decode_tokens_per_s = slow.prefill_tokens_per_s = 1e9;
    ASSERT_TRUE(tenant.set_quota(slow));
    for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), kTokens);
    expect_both_worked(engine, kRequests * kTokens);
    EXPECT_EQ(tenant.ledger().tokens_generated, kRequests * kTokens);
    EXPECT_EQ(tenant.ledger().tokens_prompted, kRequests * kLength);
  }
}

TEST_P(TwoDevices, ServeTenantsThreeToOneByTheirWeights) {
  constexpr std::uint32_t kSlots = 4, kLight = 320, kHeavy = 640, kLength = 16, kTokens = 4;
  // Both tenants have requests that wait on each device until so many have ended, even where one device alone works:
  // half of the heavy one's with a third as many.
  constexpr std::uint32_t kCompared = 400;
  constexpr double kCost = kLength + 2 * kTokens;  // of a request, in service
  const auto engine = start_both(kSlots);
  // With so many slots allowed what they have now counts little beside what they were served.
  auto one = quota("standard", 4096), three = quota("standard", 4096);
  for (TenantQuota* q : {&one, &three}) q->decode_tokens_per_s = q->prefill_tokens_per_s = 1e9;
  three.weight = 3;
  const auto light = engine.tenant("one", one), heavy = engine.tenant("three", three);
  gate_.close();
  std::vector<Stream> streams;
  for (std::uint32_t i = 0; i < kLight + kHeavy; ++i)
    streams.push_back(submit(i % 3 == 0 ? light : heavy, token_request(prompt(kLength, i), kTokens)));
  double largest = 0;
  std::uint64_t n_seen = 0, of_light = 0, of_heavy = 0;
  std::mutex mutex;
  engine.probe->change = [&](const StepInput&, StepOutput&) {
    const auto a = light.ledger(), b = heavy.ledger();
    const std::lock_guard lock(mutex);
    if (a.requests_finished + b.requests_finished > kCompared) return;
    ++n_seen;
    largest = std::max(largest, std::abs(a.service - b.service));
    of_light = std::max(of_light, a.tokens_generated);
    of_heavy = std::max(of_heavy, b.tokens_generated);
  };
  gate_.open();
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), kTokens);
  engine.probe->change = {};
  EXPECT_GT(n_seen, 100u);
  // Slots are given one at a time, and what has one runs on: at most what the slots hold lies between the two.
  EXPECT_LE(largest, 2 * kSlots * kCost);
  EXPECT_NEAR(double(of_heavy) / double(of_light), 3, 0.3);
  expect_both_worked(engine, (kLight + kHeavy) * kTokens);
  EXPECT_EQ(light.ledger().tokens_generated, kLight * kTokens);
  EXPECT_EQ(heavy.ledger().tokens_generated, kHeavy * kTokens);
  std::cout << n_seen << " steps, service differed by at most " << largest << " of " << 2 * kSlots * kCost
            << "; tokens when both still waited: " << of_heavy << " to " << of_light << std::endl;
}

std::vector<TwoDevicesCase> two_devices_cases() {
  std::vector<TwoDevicesCase> cases;
  for (const TierEntry& entry : executor_tiers()) {
    if (entry.tier.n_devices == nullptr || entry.tier.name == "null") continue;  // one device, or no bits
    cases.push_back({entry.tier.name, "tiny_llama_k-Q4_K_M"});
    if (entry.tier.name != "t_cpu") cases.push_back({entry.tier.name, "demo"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Tiers, TwoDevices, ::testing::ValuesIn(two_devices_cases()), [](const auto& info) {
  auto name = info.param.tier + "_" + info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
