// An engine without threads of its own: each pump is one look of its step loops, and whoever waits pumps.
#include <gmock/gmock.h>

#include "engine_fixture.h"

namespace zinc_rt {
namespace {

class DeafSink final : public Sink {
 public:
  SinkResult push(const StreamEvent&) override { return SinkResult::kTaken; }
  void end(std::uint32_t) override {}
};

class Pump : public ::testing::Test {
 protected:
  // Each step notes the thread that it runs on.
  TestEngine make(Drive drive = Drive::kPump, const EngineOptions& options = {}, std::uint32_t slots = 3) {
    auto executor_options = small_options();
    executor_options.max_slots = slots;
    auto probe = std::make_shared<Probe>();
    probe->before = [this](const StepInput&, std::uint64_t) {
      if (std::this_thread::get_id() != me_) ++n_elsewhere_;
      return Status{};
    };
    return start_engine("llama_spm-f32", executor_options, options, std::move(probe), open_on_ring, drive);
  }
  void TearDown() override { EXPECT_EQ(n_elsewhere_.load(), 0); }

  const std::thread::id me_ = std::this_thread::get_id();
  std::atomic<int> n_elsewhere_{0};  // steps on other threads
};

TEST_F(Pump, OneCallIsOneStep) {
  const auto engine = make();
  const auto session = engine.session();
  auto stream = session.stream(token_request(prompt(20), 5));
  ASSERT_TRUE(stream);
  EXPECT_EQ(engine.probe->n_steps.load(), 0u);
  for (std::uint64_t n = 1; n <= 5; ++n) {
    EXPECT_TRUE(engine.core->pump().ran);
    EXPECT_EQ(engine.probe->n_steps.load(), n);
    EXPECT_EQ(stream->completion().token_ids.size(), n);
  }
  EXPECT_FALSE(engine.core->pump().ran);
  EXPECT_EQ(engine.probe->n_steps.load(), 5u);
  EXPECT_EQ(stream->completion().finish_reason, "length");
  expect_all_free(engine);
}

TEST_F(Pump, WhoWaitsGetsWhatThreadsGive) {
  std::vector<Completion> threads, pumped;
  for (const Drive drive : {Drive::kThreads, Drive::kPump}) {
    const auto engine = make(drive);
    const auto session = engine.session();
    auto& all = drive == Drive::kThreads ? threads : pumped;
    for (unsigned i = 0; i < 3; ++i) {
      auto request = token_request(prompt(30 + 5 * i, i), 12);
      request.temperature = 0.8f;
      request.seed = 7 + i;
      request.n = 1 + i;
      request.logprobs = 2;
      const auto completion = session.generate(request);
      ASSERT_TRUE(completion) << completion.error().message;
      all.push_back(*completion);
    }
    expect_all_free(engine);
    if (drive == Drive::kThreads) n_elsewhere_ = 0;
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    EXPECT_EQ(pumped[i].text, threads[i].text);
    EXPECT_EQ(pumped[i].token_ids, threads[i].token_ids);
    EXPECT_EQ(pumped[i].logits_hashes, threads[i].logits_hashes);
    EXPECT_EQ(pumped[i].choices.size(), threads[i].choices.size());
  }
}

TEST_F(Pump, StreamsSideBySideAndTimeouts) {
  const auto engine = make();
  auto a = engine.session("alice").stream(token_request(prompt(20), 6));
  auto b = engine.session("bob").stream(token_request(prompt(25, 2), 9));
  auto slow_request = token_request(prompt(10, 3), 8);
  slow_request.stream_capacity = 1;  // its reader comes late, and must not hold up the others
  auto slow = engine.session("carol").stream(slow_request);
  ASSERT_TRUE(a && b && slow);
  bool is_there = true;
  const auto early = a->next_within(0, is_there);
  ASSERT_TRUE(early);
  EXPECT_FALSE(is_there);
  std::size_t n_events = 0;
  for (auto* stream : {&*b, &*a, &*slow})
    for (auto event = stream->next(); event && *event; event = stream->next()) ++n_events;
  EXPECT_GE(n_events, 6u + 9 + 8);
  for (auto* stream : {&*b, &*a, &*slow}) EXPECT_EQ(stream->completion().finish_reason, "length");
  expect_all_free(engine);
}

TEST_F(Pump, CancelAndDrain) {
  const auto engine = make();
  const auto session = engine.session();
  auto cancelled = session.stream(token_request(prompt(20), 60));
  ASSERT_TRUE(cancelled && engine.core->pump().ran);
  cancelled->cancel();
  for (auto event = cancelled->next(); event && *event;) event = cancelled->next();
  EXPECT_EQ(cancelled->completion().finish_reason, "cancelled");
  auto running = session.stream(token_request(prompt(20), 6));
  ASSERT_TRUE(running);
  EXPECT_FALSE(engine.core->drain(0));
  EXPECT_TRUE(engine.core->drain(60'000));
  EXPECT_EQ(running->completion().finish_reason, "length");
  EXPECT_FALSE(session.stream(token_request(prompt(4), 1)));
  expect_all_free(engine);
}

TEST_F(Pump, CloseEndsWhatRunsAndWhatWaits) {
  const auto engine = make(Drive::kPump, {}, 1);
  const auto session = engine.session();
  auto running = session.stream(token_request(prompt(20), 60)), waiting = session.stream(token_request(prompt(20), 60));
  ASSERT_TRUE(running && waiting && engine.core->pump().ran);
  engine.core->close();
  for (auto* stream : {&*running, &*waiting}) {
    Result<std::optional<StreamEvent>> event = stream->next();
    while (event && *event) event = stream->next();
    ASSERT_FALSE(event);
    EXPECT_EQ(event.error().code, StatusCode::kUnavailable);
  }
  EXPECT_FALSE(engine.core->pump().ran);
}

// One look ends more requests than the ring of events holds.
TEST_F(Pump, AFullRingIsEmptiedByWhoFillsIt) {
  EngineOptions options;
  constexpr std::size_t kMany = 5000;  // the ring has 4096
  options.queue_cap = kMany;
  const auto engine = make(Drive::kPump, options);
  const auto session = engine.session();
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < kMany; ++i) {
    auto handle = session.submit(token_request({5, 6}, 1), std::make_shared<DeafSink>());
    ASSERT_TRUE(handle) << handle.error().message;
    handles.push_back(std::move(*handle));
  }
  for (RequestHandle& handle : handles) handle.cancel();
  engine.core->pump();
  EXPECT_TRUE(std::ranges::all_of(handles, &RequestHandle::is_done));
  EXPECT_EQ(handles.back().completion().finish_reason, "cancelled");
  EXPECT_EQ(engine.probe->n_steps.load(), 0u);
  expect_all_free(engine);
}

TEST(PublicPump, AProgramWithItsOwnLoopDrivesTheEngine) {
  EngineOptions options;
  options.tier = "t_cpu";
  options.max_context = 64;
  options.max_slots = 2;
  auto engine = Engine::open_without_threads(model_path("llama_spm-f32"), options);
  ASSERT_TRUE(engine) << engine.error().message;
  const auto idle = engine->pump();
  ASSERT_TRUE(idle);
  EXPECT_FALSE(idle->ran);
  EXPECT_EQ(idle->wait_ms, std::numeric_limits<double>::infinity());
  const auto tenant = engine->tenant("page");
  ASSERT_TRUE(tenant);
  const auto session = tenant->session();
  ASSERT_TRUE(session);
  Request request;
  request.token_ids = prompt(10);
  request.max_tokens = 3;
  request.ignore_eos = true;
  const auto sink = std::make_shared<DeafSink>();
  const auto handle = session->submit(std::move(request), sink);
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_FALSE(handle->is_done());
  int n = 0;
  while (engine->pump()->ran) ++n;
  EXPECT_EQ(n, 3);
  EXPECT_TRUE(handle->is_done());
  EXPECT_EQ(handle->completion().token_ids.size(), 3u);
  engine->close();
  EXPECT_FALSE(engine->pump()->ran);

  auto with_threads = Engine::open(model_path("llama_spm-f32"), options);
  ASSERT_TRUE(with_threads);
  EXPECT_EQ(with_threads->pump().error().code, StatusCode::kUnavailable);
}

}  // namespace
}  // namespace zinc_rt
