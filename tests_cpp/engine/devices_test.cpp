// A model on several devices, and several models on devices of their own: who runs where, that devices step at the same
// time, and that tenants have over all of them what they have on one.
#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

constexpr auto kLong = std::chrono::seconds(10);

// Where steps of several devices meet: nobody goes on before all have come.
class Meeting {
 public:
  explicit Meeting(int n) : n_missing_(n) {}
  void come() {
    std::unique_lock lock(mutex_);
    --n_missing_;
    changed_.notify_all();
    all_came_ = changed_.wait_for(lock, kLong, [&] { return n_missing_ <= 0; });
  }
  bool all_came() {
    const std::lock_guard lock(mutex_);
    return all_came_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_missing_;
  bool all_came_ = false;
};

// Comes to the meeting within the first step that picks a token; changes nothing.
LogitsProcessor comes_to(std::shared_ptr<Meeting> meeting) {
  return [meeting = std::move(meeting), has_come = false](std::span<const std::int32_t>,
                                                          std::span<float>) mutable -> Status {
    if (!std::exchange(has_come, true)) meeting->come();
    return {};
  };
}

EngineOptions on(std::vector<std::uint32_t> devices) {
  EngineOptions options;
  options.tier = "t_cpu";
  options.devices = std::move(devices);
  options.max_slots = 2;
  options.max_context = 128;
  options.threads = 2;
  return options;
}

class DevicesTest : public EngineTest {
 protected:
  // Slots are those of a device.
  TestEngine make_on(std::uint32_t n_devices, std::uint32_t slots, EngineOptions options = {},
                     std::uint32_t kv_pages = 0) {
    options.devices.clear();
    for (std::uint32_t i = 0; i < n_devices; ++i) options.devices.push_back(i);
    return make(slots, kv_pages, options);
  }
  static std::uint64_t of_device(const TestEngine& engine, std::uint32_t device, const char* key) {
    return engine.stats()["models"][0]["devices"][device][key].get<std::uint64_t>();
  }
  // n requests of max_tokens tokens each, the first of which are held by the gate.
  std::vector<Stream> hold(const TestEngine& engine, unsigned n, std::uint32_t max_tokens) {
    std::vector<Stream> streams;
    gate_.close();
    for (unsigned i = 0; i < n; ++i)
      streams.push_back(*engine.session().stream(token_request(prompt(20, i), max_tokens)));
    return streams;
  }
  // Waits for the end of what was submitted; the ledger and the statistics are complete then.
  static void expect_quiet(const TestEngine& engine) {
    EXPECT_TRUE(eventually([&] { return engine.stat("running") + engine.stat("waiting") == 0; }));
    expect_all_free(engine);
  }
};

TEST_F(DevicesTest, TwoModelsOnTwoDevicesStepAtTheSameTime) {
  const auto core = EngineCore::open(model_path("llama_spm-f32"), on({0}));
  ASSERT_TRUE(core) << core.error().message;
  ASSERT_TRUE((*core)->add_model(model_path("qwen35-f32"), "other", on({1})));
  const TestEngine engine{{}, *core};
  const auto meeting = std::make_shared<Meeting>(2);
  std::vector<Stream> streams;
  for (const char* model : {"", "other"}) {
    auto request = token_request(prompt(8), 2);
    request.model = model;
    request.logits_processor = comes_to(meeting);
    auto stream = engine.session().stream(request);
    ASSERT_TRUE(stream) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (Stream& stream : streams) EXPECT_EQ(read(stream).finish_reason, "length");
  EXPECT_TRUE(meeting->all_came()) << "the second step began only when the first had ended";
}

TEST_F(DevicesTest, ReplicasStepAtTheSameTimeAndARequestWithNothingCachedGoesWhereLessIsToDo) {
  const auto engine = make_on(3, 1);
  const auto meeting = std::make_shared<Meeting>(3);
  std::vector<Stream> streams;
  for (unsigned i = 0; i < 3; ++i) {
    auto request = token_request(prompt(40, i), 3);
    request.logits_processor = comes_to(meeting);
    auto stream = engine.session().stream(request);
    ASSERT_TRUE(stream) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), 3u);
  EXPECT_TRUE(meeting->all_came());
  expect_quiet(engine);
  for (std::uint32_t device = 0; device < 3; ++device) EXPECT_EQ(of_device(engine, device, "admissions"), 1u);
}

TEST_F(DevicesTest, AConversationStaysWhereItsPrefixIs) {
  const auto engine = make_on(2, 2);
  const auto session = engine.session();
  std::map<unsigned, std::uint32_t> device_of;
  for (unsigned turn = 0; turn < 3; ++turn)
    for (unsigned i = 0; i < 6; ++i) {
      const auto request = token_request(prompt(32 + 16 * turn, i), 1);
      const auto there = session.cached_prefix(request);
      ASSERT_TRUE(there) << there.error().message;
      EXPECT_EQ(there->cached_tokens, turn == 0 ? 0 : 16 + 16 * turn) << i;
      if (turn == 0) device_of[i] = there->device;
      EXPECT_EQ(there->device, device_of[i]);
      const auto done = session.generate(request);
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(done->usage.cached_tokens, there->cached_tokens);
    }
  // Nothing else ran, so the conversations were placed by their keys alone; six of them use both devices.
  EXPECT_GT(of_device(engine, 0, "admissions"), 0u);
  EXPECT_GT(of_device(engine, 1, "admissions"), 0u);
  EXPECT_EQ(of_device(engine, 0, "admissions") + of_device(engine, 1, "admissions"), 18u);
  expect_quiet(engine);
}

TEST_F(DevicesTest, ChoicesOfOnePromptShareTheirReplica) {
  const auto engine = make_on(2, 4);
  auto request = token_request(prompt(40), 4);
  request.n = 3;
  request.temperature = 1;
  request.seed = 5;
  const auto done = engine.session().generate(request);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->choices.size(), 3u);
  const auto first = of_device(engine, 0, "admissions"), second = of_device(engine, 1, "admissions");
  EXPECT_TRUE((first == 3 && second == 0) || (first == 0 && second == 3)) << first << ' ' << second;
  EXPECT_EQ(engine.stat("prefill_tokens"), 40u + 2) << "the others take all but the last token from the first";
}

TEST_F(DevicesTest, SlotsAndPagesOfATenantHoldOverAllDevices) {
  const auto engine = make_on(2, 4);
  auto limited = quota("standard", 3);
  limited.max_kv_pages = 9;
  const auto tenant = engine.tenant("limited", limited);
  std::uint32_t most_slots = 0, most_pages = 0;
  std::mutex mutex;
  engine.probe->after = [&](const StepInput&, std::uint64_t) -> Status {
    const auto ledger = tenant.ledger();
    const std::lock_guard lock(mutex);
    most_slots = std::max(most_slots, ledger.slots_now);
    most_pages = std::max(most_pages, ledger.kv_pages_now);
    return {};
  };
  std::vector<Stream> streams;
  for (unsigned i = 0; i < 14; ++i) {
    auto stream = tenant.session()->stream(token_request(prompt(30, i), 20));
    ASSERT_TRUE(stream) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), 20u);
  expect_quiet(engine);
  EXPECT_EQ(most_slots, 3u);
  EXPECT_LE(most_pages, 9u);
  const auto ledger = tenant.ledger();
  EXPECT_LE(ledger.kv_pages_peak, 9u);
  EXPECT_EQ(ledger.requests_finished, 14u);
  EXPECT_EQ(ledger.tokens_generated, 14u * 20);
  EXPECT_EQ(ledger.tokens_prompted, 14u * 30);
  for (std::uint32_t device = 0; device < 2; ++device) EXPECT_GT(of_device(engine, device, "generated_tokens"), 0u);
}

TEST_F(DevicesTest, WhatWaitsOnOneDeviceForASlotOfItsTenantOnAnotherGetsIt) {
  const auto engine = make_on(2, 2);
  const auto tenant = engine.tenant("one", quota("standard", 1));
  gate_.close();
  auto first = tenant.session()->stream(token_request(prompt(20, 1), 4));
  ASSERT_TRUE(first && gate_.wait_arrived(1));
  auto second = tenant.session()->stream(token_request(prompt(20, 2), 4));
  ASSERT_TRUE(second);
  EXPECT_TRUE(eventually([&] { return engine.stat("waiting") == 1; }));
  EXPECT_EQ(of_device(engine, 0, "running") + of_device(engine, 1, "waiting") == 2 ||
                of_device(engine, 1, "running") + of_device(engine, 0, "waiting") == 2,
            true);
  gate_.open();
  EXPECT_EQ(read(*second).token_ids.size(), 4u);
  EXPECT_EQ(read(*first).token_ids.size(), 4u);
  expect_quiet(engine);
}

TEST_F(DevicesTest, ARateHoldsOverAllDevices) {
  const auto engine = make_on(2, 1);
  auto slow = quota("standard");
  slow.decode_tokens_per_s = 0.1;  // half a token in the window, then ten seconds a token
  auto tenant = engine.tenant("slow", slow);
  std::vector<Stream> streams;
  for (unsigned i = 0; i < 2; ++i) streams.push_back(*tenant.session()->stream(token_request(prompt(8, i), 6)));
  EXPECT_TRUE(eventually([&] { return tenant.ledger().tokens_generated >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  // A prompt's own token is free of the rate. Then one decodes, or both do so at once; nobody starts or decodes after that.
  EXPECT_LE(tenant.ledger().tokens_generated, 4u);
  ASSERT_TRUE(tenant.set_quota(quota("standard")));
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), 6u);
  expect_quiet(engine);
}

// Service is counted over both devices: who is served more on one waits on the other.
TEST_F(DevicesTest, TenantsAreServedByTheirWeightsOverAllDevices) {
  const auto engine = make_on(2, 2);
  // With so many slots allowed what they have now counts little beside what they were served.
  auto half = quota("standard", 4096), whole = quota("standard", 4096);
  for (TenantQuota* q : {&half, &whole}) q->decode_tokens_per_s = q->prefill_tokens_per_s = 1e9;
  half.weight = 1;
  whole.weight = 2;
  const auto a = engine.tenant("half", half), b = engine.tenant("whole", whole);
  gate_.close();
  std::vector<Stream> streams;
  for (unsigned i = 0; i < 160; ++i) {
    const auto& tenant = i % 2 == 0 ? a : b;
    streams.push_back(*tenant.session()->stream(token_request(prompt(16, i), 4)));
  }
  constexpr double kCost = 16 + 2 * 4;  // of a request, in service
  double largest = 0;
  std::uint64_t n_seen = 0;
  std::mutex mutex;
  engine.probe->change = [&](const StepInput&, StepOutput&) {
    const auto one = a.ledger(), two = b.ledger();
    const std::lock_guard lock(mutex);
    if (one.requests_finished + two.requests_finished > 40) return;  // later one device may have one tenant's alone
    ++n_seen;
    largest = std::max(largest, std::abs(one.service - two.service));
  };
  gate_.open();
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), 4u);
  engine.probe->change = {};
  EXPECT_GT(n_seen, 20u);
  // Slots are given one at a time, and what has one runs on: at most what four slots hold lies between them.
  EXPECT_LE(largest, 4 * kCost);
  expect_quiet(engine);
}

TEST_F(DevicesTest, BatchGivesWayOnTheDeviceOfAnUrgentRequestAndGoesOnWithTheSameTokens) {
  const auto engine = make_on(2, 1);
  const auto batch = engine.tenant("batch", quota("batch")), urgent = engine.tenant("urgent", quota("interactive"));
  std::vector<Completion> alone;
  for (unsigned i = 0; i < 2; ++i) {
    const auto done =
        start_engine("llama_spm-f32", small_options()).session().generate(token_request(prompt(20, i), 30));
    ASSERT_TRUE(done);
    alone.push_back(*done);
  }
  gate_.close();
  std::vector<Stream> streams;
  for (unsigned i = 0; i < 2; ++i) streams.push_back(*batch.session()->stream(token_request(prompt(20, i), 30)));
  ASSERT_TRUE(gate_.wait_arrived(2));  // one on each device
  auto first = urgent.session()->stream(token_request(prompt(10, 7), 3));
  ASSERT_TRUE(first) << first.error().message;
  gate_.open();
  EXPECT_EQ(read(*first).token_ids.size(), 3u);
  EXPECT_EQ(engine.stat("preemptions"), 1u);
  for (unsigned i = 0; i < 2; ++i) {
    const auto got = read(streams[i]);
    EXPECT_EQ(got.token_ids, alone[i].token_ids);
    EXPECT_EQ(got.logits_hashes, alone[i].logits_hashes);
  }
  expect_quiet(engine);
}

TEST_F(DevicesTest, ACancelReachesTheDeviceOfItsRequest) {
  const auto engine = make_on(2, 1);
  auto streams = hold(engine, 4, 100);
  ASSERT_TRUE(gate_.wait_arrived(2));
  for (Stream& stream : streams) stream.cancel();
  gate_.open();
  for (Stream& stream : streams) EXPECT_EQ(read(stream).finish_reason, "cancelled");
  expect_quiet(engine);
}

TEST_F(DevicesTest, CloseEndsWhatRunsOnAllDevices) {
  const auto engine = make_on(2, 1);
  auto streams = hold(engine, 6, 100);
  ASSERT_TRUE(gate_.wait_arrived(2));
  std::atomic<bool> is_closed = false;
  std::thread closer([&] {
    engine.core->close();
    is_closed = true;
  });
  while (!is_closed) {
    gate_.let(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  closer.join();
  for (Stream& stream : streams) {
    Result<std::optional<StreamEvent>> event;
    do event = stream.next();
    while (event && *event);
    ASSERT_FALSE(event);
    EXPECT_EQ(event.error().code, StatusCode::kUnavailable);
  }
}

// A model on both devices comes and goes while another runs there, and while clients and diagnostics use it.
TEST_F(DevicesTest, AModelIsRemovedFromAllItsDevicesWhileTheyStep) {
  const auto engine = make_on(2, 2);
  std::atomic<bool> stop = false;
  std::atomic<int> n_served = 0;
  std::vector<std::thread> users;
  const auto is_gone = [](StatusCode code) {
    return code == StatusCode::kNotFound || code == StatusCode::kUnavailable || code == StatusCode::kExhausted;
  };
  for (unsigned i = 0; i < 3; ++i)
    users.emplace_back([&, i, session = engine.session("user " + std::to_string(i))] {
      auto request = token_request(prompt(8, i), 3);
      for (unsigned n = 0; !stop; ++n) {
        request.model = n % 3 == 0 ? "" : "other";
        auto result = session.generate(request);
        EXPECT_TRUE(result || is_gone(result.error().code)) << result.error().message;
        n_served += result.has_value() && n % 3 != 0;
        const auto cached = session.cached_prefix(request);
        EXPECT_TRUE(cached || is_gone(cached.error().code)) << cached.error().message;
      }
    });
  users.emplace_back([&] {
    while (!stop) {
      const auto model = engine.core->model("other");
      if (!model) continue;
      const auto logits = engine.core->logits(**model, prompt(30), LogitsRows::kLast, 4);
      EXPECT_TRUE(logits || is_gone(logits.error().code)) << logits.error().message;
      static_cast<void>(engine.stats());
    }
  });
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(engine.core->add_model(model_path("llama_spm-f32"), "other", on({1, 0})));
    const int before = n_served;
    EXPECT_TRUE(eventually([&] { return n_served > before + 2; }));
    EXPECT_TRUE(engine.core->remove_model("other"));
  }
  stop = true;
  for (auto& user : users) user.join();
  expect_quiet(engine);
}

TEST_F(DevicesTest, ALoadedPrefixIsFoundWhereItsPromptsGo) {
  const auto path = ::testing::TempDir() + "zrt_devices_prefix_" + std::to_string(::getpid());
  const auto request = token_request(prompt(50), 2);
  {
    const auto engine = make_on(2, 2);
    const auto saved = engine.session().save_prefix(request, path);
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(*saved, 48u);
  }
  const auto engine = make_on(2, 2);
  const auto session = engine.session();
  const auto loaded = session.load_prefix(path, "", "");
  std::remove(path.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto done = session.generate(request);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->usage.cached_tokens, 48u);
}

TEST_F(DevicesTest, ATenantThatLeftLeavesNothingOnAnyDevice) {
  const auto engine = make_on(2, 2);
  for (int round = 0; round < 6; ++round) {
    const auto name = "t" + std::to_string(round);
    std::weak_ptr<TenantState> last;
    {
      const auto state = engine.core->tenant(name, {});
      ASSERT_TRUE(state);
      EXPECT_EQ((*state)->id, 0u);
      last = *state;
      for (unsigned i = 0; i < 4; ++i) {
        const auto done = engine.session(name).generate(token_request(prompt(40, i), 1));
        ASSERT_TRUE(done);
        EXPECT_EQ(done->usage.cached_tokens, 0u) << "of the tenant before";
      }
    }
    ASSERT_TRUE(engine.core->remove_tenant(name));
    EXPECT_TRUE(eventually([&] { return last.expired(); }));
  }
  expect_quiet(engine);
}

TEST_F(DevicesTest, TellWhatEachDeviceHas) {
  const auto engine = make_on(2, 2);
  const auto stats = engine.core->stats();
  ASSERT_EQ(stats.models.size(), 1u);
  ASSERT_EQ(stats.models[0].devices.size(), 2u);
  EXPECT_EQ(stats.models[0].slots, 4u);
  EXPECT_EQ(stats.models[0].pages, 2 * stats.models[0].devices[1].stats.pages);
  EXPECT_EQ(stats.models[0].allocated_bytes, 2 * stats.models[0].devices[0].stats.allocated_bytes);
  EXPECT_EQ(stats.models[0].devices[1].index, 1u);
}

// A step that hangs shows, also while another device goes on.
TEST_F(DevicesTest, AStepThatLastsLongIsSeenWithoutWaitingForIt) {
  const auto engine = make_on(2, 1);
  gate_.close();
  auto stuck = engine.session().stream(token_request(prompt(20, 1), 2));
  ASSERT_TRUE(stuck && gate_.wait_arrived(1));
  EXPECT_TRUE(eventually([&] { return engine.core->stats().step_ms > 20; }));
  auto other = engine.session().stream(token_request(prompt(20, 2), 2));
  ASSERT_TRUE(other && gate_.wait_arrived(2));
  EXPECT_EQ(engine.stat("running"), 2u);
  gate_.open();
  EXPECT_EQ(read(*stuck).token_ids.size(), 2u);
  EXPECT_EQ(read(*other).token_ids.size(), 2u);
  EXPECT_TRUE(eventually([&] { return engine.core->stats().step_ms == 0; }));
}

TEST_F(DevicesTest, ATraceHasATrackOfStepsADevice) {
  const auto engine = make_on(2, 1);
  ASSERT_TRUE(engine.core->timeline().start());
  auto streams = hold(engine, 2, 2);
  ASSERT_TRUE(gate_.wait_arrived(2));
  gate_.open();
  for (Stream& stream : streams) EXPECT_EQ(read(stream).token_ids.size(), 2u);
  expect_quiet(engine);
  const auto path = ::testing::TempDir() + "zrt_devices_trace_" + std::to_string(::getpid());
  ASSERT_TRUE(engine.core->timeline().write_json(path));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  std::map<std::uint64_t, std::string> tracks;
  std::set<std::string> with_steps;
  const auto trace = nlohmann::json::parse(text.str());
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name" && event["pid"] == 1) tracks[event["tid"]] = event["args"]["name"];
    if (event["name"] == "step") with_steps.insert(tracks.at(event["tid"]));
  }
  EXPECT_EQ(with_steps, (std::set<std::string>{"steps", "steps 2"}));
}

TEST_F(DevicesTest, RefusalsNameTheParameterAndBothValues) {
  const auto refusal = [](std::vector<std::uint32_t> devices) {
    const auto core = EngineCore::open(model_path("llama_spm-f32"), on(std::move(devices)));
    return core ? std::string() : core.error().message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("devices is empty, at least 1 wanted"));
  EXPECT_THAT(refusal({0, 2, 0}), HasSubstr("devices 0,2,0 has 0 twice"));
  EXPECT_THAT(refusal({1, 64}), HasSubstr("devices: 64 of tier t_cpu, which has 64 here"));
}

}  // namespace
}  // namespace zinc_rt
