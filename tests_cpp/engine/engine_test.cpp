// What the engine promises its clients: ends, refusals, sinks, models, waking and sleeping.
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "engine_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, CancellationFreesSlotAndPagesWithinOneStep) {
  const auto engine = make(2, 10);
  const auto session = engine.session();
  gate_.close();
  auto first = session.stream(token_request(prompt(64), 16));
  ASSERT_TRUE(first && gate_.wait_arrived(1));
  auto second = session.stream(token_request(prompt(16, 2), 60));
  gate_.let(6);
  ASSERT_TRUE(second && gate_.wait_arrived(7));
  // Neither slot nor pages are there for the third: five, and two that stay open for those that run.
  auto third = session.stream(token_request(prompt(64, 3), 4));
  gate_.let(3);
  ASSERT_TRUE(third && gate_.wait_arrived(10));
  EXPECT_EQ(third->completion().timings.queue_ms, 0);
  const auto slots = steps().back();
  ASSERT_EQ(slots.size(), 2u);
  first->cancel();  // the tenth step is under way
  gate_.let(1);
  ASSERT_TRUE(gate_.wait_arrived(11));
  EXPECT_TRUE(eventually([&] { return first->completion().finish_reason == "cancelled"; }));
  EXPECT_TRUE(eventually([&] { return third->completion().timings.queue_ms > 0; }));
  EXPECT_EQ(steps().back().size(), 2u);  // it runs in the eleventh
  gate_.open();
  EXPECT_EQ(read(*third).finish_reason, "length");
  EXPECT_EQ(read(*second).finish_reason, "length");
  expect_all_free(engine);
  EXPECT_EQ(engine.tenant("alice").ledger().requests_cancelled, 1u);
}

TEST_F(EngineTest, ACallThatIsTakenBackDoesNoFurtherStep) {
  const auto engine = make(2, 10);
  const auto model = engine.core->model("");
  ASSERT_TRUE(model);
  int n_asked = 0;
  const auto after_two = [&] { return ++n_asked == 3; };
  const auto at_once = [] { return true; };
  const auto logits = engine.core->logits(**model, prompt(30), LogitsRows::kAll, 4, after_two);
  ASSERT_FALSE(logits);
  EXPECT_EQ(logits.error().code, StatusCode::kCancelled);
  EXPECT_EQ(steps().size(), 2u);
  const auto hidden = engine.core->hidden(**model, prompt(30), 0, at_once);
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().code, StatusCode::kCancelled);
  const auto path = std::filesystem::path(::testing::TempDir()) / "zrt_taken_back";
  const auto saved = engine.session().save_prefix(token_request(prompt(32), 1), path.string(), at_once);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(steps().size(), 2u);
  expect_all_free(engine);
}

TEST_F(EngineTest, AFullQueueSaysWhenToTryAgain) {
  EngineOptions options;
  options.queue_cap = 2;
  const auto engine = make(1, 0, options);
  const auto session = engine.session();
  gate_.close();
  auto running = session.stream(token_request(prompt(8), 4));
  ASSERT_TRUE(running && gate_.wait_arrived(1));
  auto one = session.stream(token_request(prompt(8), 4)), two = session.stream(token_request(prompt(8), 4));
  ASSERT_TRUE(one && two);
  const auto refused = session.stream(token_request(prompt(8), 4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kExhausted);
  EXPECT_GT(refused.error().retry_after_s, 0);
  EXPECT_THAT(refused.error().message, HasSubstr("2 may wait"));
  gate_.open();
  for (auto* stream : {&*running, &*one, &*two}) EXPECT_EQ(read(*stream).finish_reason, "length");
  EXPECT_TRUE(session.generate(token_request(prompt(8), 4)));
  EXPECT_EQ(engine.tenant("alice").ledger().requests_rejected, 1u);
  expect_all_free(engine);
}

TEST_F(EngineTest, DeadlinesEndWhatRunsAndWhatWaits) {
  const auto engine = make(1);
  const auto session = engine.session();
  gate_.close();
  auto request = token_request(prompt(8), 100);
  request.deadline_ms = 1000;
  auto running = session.stream(request);
  ASSERT_TRUE(running && gate_.wait_arrived(1));
  auto waiting = session.stream(request);
  ASSERT_TRUE(waiting);
  gate_.let(3);
  ASSERT_TRUE(gate_.wait_arrived(4));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  gate_.let(1);
  for (auto* stream : {&*running, &*waiting}) EXPECT_EQ(read(*stream).finish_reason, "deadline");
  EXPECT_EQ(running->completion().token_ids.size(), 4u);
  EXPECT_TRUE(waiting->completion().token_ids.empty());
  gate_.open();
  expect_all_free(engine);
}

TEST_F(EngineTest, CloseEndsWhatEightThreadsStream) {
  const auto engine = make(4);
  std::atomic<int> n_tokens = 0, n_unavailable = 0, n_other = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i)
    threads.emplace_back([&, i, session = engine.session("tenant " + std::to_string(i % 3))] {
      for (unsigned round = 0;; ++round) {
        auto stream = session.stream(token_request(prompt(20, i + round), 60));
        std::optional<Error> error;
        if (!stream) error = stream.error();
        while (stream) {
          const auto event = stream->next();
          if (!event) error = event.error();
          if (!event || !*event) break;
          n_tokens += (*event)->is_token;
        }
        if (!error) continue;
        ++(error->code == StatusCode::kUnavailable ? n_unavailable : n_other);
        return;
      }
    });
  EXPECT_TRUE(eventually([&] { return n_tokens > 100; }));
  engine.core->close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(n_unavailable, 8);
  EXPECT_EQ(n_other, 0);
  EXPECT_EQ(engine.core->tenant("late", {}).error().code, StatusCode::kUnavailable);
  engine.core->close();
}

TEST_F(EngineTest, DrainTakesNoMoreAndWaits) {
  const auto engine = make(2);
  const auto session = engine.session();
  gate_.close();
  auto stream = session.stream(token_request(prompt(8), 10));
  ASSERT_TRUE(stream && gate_.wait_arrived(1));
  EXPECT_FALSE(engine.core->drain(5));
  EXPECT_EQ(session.stream(token_request(prompt(8), 1)).error().code, StatusCode::kUnavailable);
  gate_.open();
  EXPECT_TRUE(engine.core->drain(10'000));
  EXPECT_EQ(read(*stream).token_ids.size(), 10u);
  expect_all_free(engine);
}

TEST_F(EngineTest, AModelIsRemovedWhenItsRequestsHaveEnded) {
  const auto engine = make(2);
  EngineOptions options;
  options.max_slots = 2;
  options.max_context = 128;
  ASSERT_TRUE(engine.core->add_model(model_path("qwen35-f32"), "other", options));
  const auto session = engine.session();
  auto request = token_request(prompt(8), 100);
  request.model = "other";
  const auto alone = session.generate(request);
  ASSERT_TRUE(alone);
  // It ends by its last token and by a stop string at once: the request for its end comes when the model may be gone.
  request.stop = {alone->text.substr(alone->text.size() - 1)};
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(*session.stream(request));
  std::thread remover([&] { EXPECT_TRUE(engine.core->remove_model("other")); });
  EXPECT_TRUE(eventually([&] { return !session.stream(request); }));
  for (auto& stream : streams) EXPECT_EQ(read(stream).finish_reason, "stop");
  remover.join();
  for (auto& stream : streams) stream.cancel();
  EXPECT_EQ(session.stream(request).error().code, StatusCode::kNotFound);
  EXPECT_EQ(engine.core->model_names().size(), 1u);
  EXPECT_TRUE(session.generate(token_request(prompt(8), 4)));
  expect_all_free(engine);
}

// Requests, and diagnostics in a leased slot, that race with a removal get an answer: all of it or an error.
TEST_F(EngineTest, RemovalRacesWithItsUsers) {
  const auto engine = make(2);
  EngineOptions options;
  options.max_slots = 2;
  options.max_context = 128;
  std::atomic<bool> stop = false;
  std::atomic<int> n_served = 0;
  std::vector<std::thread> users;
  const auto is_gone = [](StatusCode code) {
    return code == StatusCode::kNotFound || code == StatusCode::kUnavailable || code == StatusCode::kExhausted;
  };
  for (unsigned i = 0; i < 2; ++i)
    users.emplace_back([&, i, session = engine.session()] {
      auto request = token_request(prompt(8, i), 3);
      request.model = "other";
      while (!stop) {
        auto result = session.generate(request);
        EXPECT_TRUE(result || is_gone(result.error().code)) << result.error().message;
        n_served += result.has_value();
      }
    });
  users.emplace_back([&] {
    while (!stop) {
      const auto model = engine.core->model("other");
      if (!model) continue;
      const auto logits = engine.core->logits(**model, prompt(30), LogitsRows::kLast, 4);
      EXPECT_TRUE(logits || is_gone(logits.error().code)) << logits.error().message;
      n_served += logits.has_value();
    }
  });
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(engine.core->add_model(model_path("llama_spm-f32"), "other", options));
    const int before = n_served;
    EXPECT_TRUE(eventually([&] { return n_served > before + 2; }));
    EXPECT_TRUE(engine.core->remove_model("other"));
  }
  stop = true;
  for (auto& user : users) user.join();
  expect_all_free(engine);
}

struct ThrowingSink final : Sink {
  SinkResult push(const StreamEvent&) override { throw std::runtime_error("no"); }
  void end(std::uint32_t) override { throw std::runtime_error("no"); }
};

TEST_F(EngineTest, SinksThatBlockOrThrowDisturbNobodyElse) {
  const auto engine = make(4);
  const auto session = engine.session();
  const auto request = token_request(prompt(20), 40);
  const auto alone = session.generate(request);
  ASSERT_TRUE(alone);
  const auto blocked = std::make_shared<Gate>();  // shared: the callback may still be leaving it when the test ends
  blocked->close();
  auto held = *session.submit(request, make_callback_sink([blocked](const StreamEvent&) { blocked->pass(); }, 2));
  ASSERT_TRUE(blocked->wait_arrived(1));
  auto thrown = *session.submit(request, std::make_shared<ThrowingSink>());
  auto thrown_by_callback =
      *session.submit(request, make_callback_sink([](const StreamEvent&) { throw std::runtime_error("no"); }));
  for (int i = 0; i < 3; ++i) {
    const auto result = session.generate(request);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->logits_hashes, alone->logits_hashes);
  }
  EXPECT_TRUE(thrown.wait());
  EXPECT_EQ(thrown.completion().finish_reason, "sink_failed");
  EXPECT_TRUE(thrown_by_callback.wait());
  EXPECT_EQ(blocked->n_arrived(), 1u);
  EXPECT_FALSE(held.is_done());
  blocked->open();
  EXPECT_TRUE(held.wait());
  EXPECT_EQ(held.completion().logits_hashes, alone->logits_hashes);
  expect_all_free(engine);
}

TEST_F(EngineTest, ASinkThatFailsAfterTheLastTokenWasMadeHasFailed) {
  struct FullThenGone final : Sink {
    int n_offered = 0;
    SinkResult push(const StreamEvent&) override { return ++n_offered < 4 ? SinkResult::kFull : SinkResult::kFailed; }
    void end(std::uint32_t) override {}
  };
  const auto engine = make(2);
  auto one = *engine.session().submit(token_request(prompt(8), 1), std::make_shared<FullThenGone>());
  EXPECT_TRUE(one.wait());
  EXPECT_EQ(one.completion().finish_reason, "sink_failed");
  EXPECT_EQ(one.completion().token_ids.size(), 1u);
  expect_all_free(engine);
}

TEST_F(EngineTest, AReaderWhoStaysAwayIsTooSlow) {
  const auto engine = make(2);
  auto request = token_request(prompt(8), 100);
  request.stream_capacity = 2;
  // A few steps, until it is known that nobody reads: two tokens fill its queue, the third has no room.
  gate_.close();
  gate_.let(8);
  auto slow = engine.session("slow").stream(request);
  ASSERT_TRUE(slow && eventually([&] { return slow->completion().token_ids.size() >= 3; }));
  gate_.open();
  const auto session = engine.session("quick");
  for (int i = 0; i < 40 && slow->completion().finish_reason.empty(); ++i)
    ASSERT_TRUE(session.generate(token_request(prompt(8), 100)));
  ASSERT_TRUE(eventually([&] { return !slow->completion().finish_reason.empty(); }));
  EXPECT_EQ(slow->completion().finish_reason, "client_too_slow");
  EXPECT_LT(slow->completion().token_ids.size(), 60u);  // what the drainer had not seen yet
  EXPECT_EQ(engine.tenant("slow").ledger().requests_too_slow, 1u);
  expect_all_free(engine);
}

// As above, but it was preempted while it was held up, and comes back without its pages.
TEST_F(EngineTest, AReaderWhoStaysAwayIsTooSlowAfterAPreemptionToo) {
  EngineOptions options;
  options.prefix_cache = false;
  const auto engine = make(1, 0, options, 8);
  auto request = token_request(prompt(40), 60);
  request.stream_capacity = 1;
  // Ten steps at most, five of them for the prompt, until it is known that nobody reads.
  gate_.close();
  gate_.let(10);
  auto slow = engine.session("slow", quota("batch")).stream(request);
  ASSERT_TRUE(slow && eventually([&] { return slow->completion().token_ids.size() >= 2; }));
  gate_.open();
  ASSERT_TRUE(engine.session("quick", quota("interactive")).generate(token_request(prompt(8), 10)));
  EXPECT_EQ(engine.stat("preemptions"), 1u);
  ASSERT_TRUE(eventually([&] { return !slow->completion().finish_reason.empty(); }));
  EXPECT_EQ(slow->completion().finish_reason, "client_too_slow");
  expect_all_free(engine);
}

TEST_F(EngineTest, IdleTakesNoTimeAndWakesAtOnce) {
  const auto engine = make(2);
  const auto session = engine.session();
  ASSERT_TRUE(session.generate(token_request(prompt(8), 8)));
  const auto cpu_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& t) { return 1e3 * double(t.tv_sec) + 1e-3 * double(t.tv_usec); };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
  };
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_ms() - before, 30);
  std::vector<double> wake_ms;
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gate_.close();
    const auto n = gate_.n_arrived();
    const auto begin = std::chrono::steady_clock::now();
    auto stream = session.stream(token_request({1, 2, 3}, 1));
    ASSERT_TRUE(stream && gate_.wait_arrived(n + 1));
    wake_ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    gate_.open();
    read(*stream);
  }
  std::ranges::sort(wake_ms);
  std::cout << "from the call to the first step: " << wake_ms[15] << " ms in the middle, " << wake_ms.back()
            << " ms at most" << std::endl;
  EXPECT_LT(wake_ms[15], 1000);
}

// The request whose row has no token ends with an error; those beside it have the text that they have alone.
TEST_F(EngineTest, ARowWithoutATokenEndsItsRequestAlone) {
  for (const bool is_score : {false, true}) {
    auto engine = make(4);
    const auto session = engine.session();
    const auto good = token_request({5, 6, 7}, 12);
    const auto alone = session.generate(good);
    ASSERT_TRUE(alone);
    gate_.close();
    auto bad = token_request({9, 10, 11, 12}, 12);
    bad.logprobs = 1;
    if (is_score) bad.prompt_logprobs = 1, bad.max_tokens = 0;
    std::int32_t bad_slot = -1;
    engine.probe->change = [&](const StepInput& input, StepOutput& output) {
      for (std::size_t i = 0; i < input.token_ids.size(); ++i)
        if (input.token_ids[i] == 10 && input.positions[i] == 1) bad_slot = input.slots[i];
      // Of its prompt's second token, or of the third that it generates.
      for (std::size_t row = 0; row < input.outputs.size(); ++row)
        if (input.slots[input.outputs[row].token_index] == bad_slot &&
            input.outputs[row].position == (is_score ? 2u : 6u))
          output.tokens[row] = kNoToken;
    };
    auto first = session.stream(good), broken = session.stream(bad), last = session.stream(good);
    ASSERT_TRUE(first && broken && last);
    gate_.open();
    const auto end_of = [](Stream& stream) -> Result<Completion> {
      for (;;) {
        ZRT_TRY(const auto event, stream.next());
        if (!event) return stream.completion();
      }
    };
    const auto ended = end_of(*broken);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, StatusCode::kInternal);
    EXPECT_THAT(ended.error().message, HasSubstr("finite maximum"));
    EXPECT_EQ(broken->completion().finish_reason, "bad_logits");
    EXPECT_EQ(broken->completion().token_ids.size(), is_score ? 0u : 2u);
    for (auto* stream : {&*first, &*last}) {
      const auto same = end_of(*stream);
      ASSERT_TRUE(same);
      EXPECT_EQ(same->token_ids, alone->token_ids);
      EXPECT_EQ(same->logits_hashes, alone->logits_hashes);
    }
    EXPECT_EQ(engine.stat("bad_logits"), 1u);
    engine.probe->change = nullptr;
    EXPECT_EQ(session.generate(good)->token_ids, alone->token_ids);
    expect_all_free(engine);
  }
}

TEST_F(EngineTest, APreemptedRequestHearsOfItAndGoesOn) {
  const auto engine = make(1);
  const auto batch = engine.session("b", quota("batch")), urgent = engine.session("i", quota("interactive"));
  const auto request = token_request(prompt(40), 40);
  const auto alone = batch.generate(request);
  ASSERT_TRUE(alone && engine.tenant("b").flush_prefix_cache());
  gate_.close();
  const auto n = gate_.n_arrived();
  auto stream = batch.stream(request);
  gate_.let(10);
  ASSERT_TRUE(stream && gate_.wait_arrived(n + 11));
  auto other = urgent.stream(token_request(prompt(20), 5));
  gate_.open();
  ASSERT_TRUE(other);
  EXPECT_EQ(read(*other).token_ids.size(), 5u);
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> preempted_at;
  for (;;) {
    const auto event = stream->next();
    ASSERT_TRUE(event);
    if (!*event) break;
    if ((*event)->preempted) preempted_at.push_back(tokens.size());
    if ((*event)->is_token) tokens.push_back((*event)->token_id);
  }
  EXPECT_EQ(preempted_at, std::vector<std::size_t>{11});
  EXPECT_EQ(tokens, alone->token_ids);
  EXPECT_EQ(stream->completion().logits_hashes, alone->logits_hashes);
  EXPECT_EQ(engine.tenant("b").ledger().slots_preempted, 1u);
  expect_all_free(engine);
}

TEST_F(EngineTest, EventsCarryTheTimeOfTheirStep) {
  const auto engine = make(1);
  auto stream = engine.session().stream(token_request(prompt(8), 6));
  ASSERT_TRUE(stream);
  ASSERT_TRUE(
      eventually([&] { return !stream->completion().finish_reason.empty(); }));  // all was made before it is read
  std::vector<std::uint64_t> times;
  for (;;) {
    const auto event = stream->next();
    ASSERT_TRUE(event);
    if (!*event) break;
    if ((*event)->is_token) times.push_back((*event)->time_us);
  }
  ASSERT_EQ(times.size(), 6u);
  EXPECT_GT(times.front(), 0u);
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_NEAR(static_cast<double>(times.back() - times.front()) * 1e-3, stream->completion().timings.decode_ms, 1e-6);
}

TEST_F(EngineTest, AStreamThatIsDestroyedIsCancelled) {
  const auto engine = make(2);
  const auto request = token_request(prompt(8), 100);
  // Neither is at its end when it goes.
  gate_.close();
  gate_.let(3);
  {
    auto stream = engine.session().stream(request);
    ASSERT_TRUE(stream && stream->next());
  }
  gate_.open();
  ASSERT_TRUE(eventually([&] { return engine.tenant("alice").ledger().requests_cancelled == 1; }));
  expect_all_free(engine);
  // So is one that is assigned to.
  gate_.close();
  auto kept = engine.session().stream(request);
  auto other = engine.session().stream(token_request(prompt(8), 3));
  ASSERT_TRUE(kept && other);
  *kept = std::move(*other);
  gate_.open();
  EXPECT_EQ(read(*kept).token_ids.size(), 3u);
  EXPECT_TRUE(eventually([&] { return engine.tenant("alice").ledger().requests_cancelled == 2; }));
}

TEST_F(EngineTest, StreamsOutliveTheEngine) {
  std::optional<Stream> stream;
  {
    const auto engine = make(2);
    stream.emplace(*engine.session().stream(token_request(prompt(8), 100)));
  }
  for (;;) {
    const auto event = stream->next();
    EXPECT_TRUE(event || event.error().code == StatusCode::kUnavailable);
    if (!event || !*event) break;
  }
}

// A sink may own the last handle to the engine; the engine's own thread then lets go of it.
TEST_F(EngineTest, ASinkMayOwnTheEngine) {
  struct Owner final : Sink {
    std::shared_ptr<EngineCore> core;
    SinkResult push(const StreamEvent&) override { return SinkResult::kTaken; }
    void end(std::uint32_t) override {}
  };
  std::weak_ptr<EngineCore> core;
  {
    auto engine = make(2);
    core = engine.core;
    auto sink = std::make_shared<Owner>();
    sink->core = engine.core;
    ASSERT_TRUE(engine.session().submit(token_request(prompt(8), 30), std::move(sink)));
  }
  EXPECT_TRUE(eventually([&] { return core.expired(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what the last handle's end does comes after that
}

// Two requests of one prompt that start in one step compute the same pages; they come to hold them once. The test runs
// the steps itself: before the first one, no step's time is known that could put them into different steps.
TEST_F(EngineTest, PagesComputedTwiceAreHeldOnce) {
  auto options = small_options();
  options.kv_pages = 24;
  const auto engine = start_engine("llama_spm-f32", options, {}, {}, open_on_ring, Drive::kPump);
  const auto session = engine.session();
  auto other = session.stream(token_request(prompt(4, 9), 11));
  auto first = session.stream(token_request(prompt(48), 20)), second = session.stream(token_request(prompt(48), 20));
  ASSERT_TRUE(other && first && second);
  ASSERT_TRUE(engine.core->pump().ran);
  for (auto* stream : {&*other, &*first, &*second}) EXPECT_EQ(stream->completion().token_ids.size(), 1u);
  for (int n = 2; n <= 8; ++n) ASSERT_TRUE(engine.core->pump().ran);
  // One page of the other's, three that both list, one of each.
  EXPECT_GE(engine.stat("pages_free"), 24u - 6);
  EXPECT_EQ(read(*first).logits_hashes, read(*second).logits_hashes);
  EXPECT_EQ(read(*other).token_ids.size(), 11u);
  expect_all_free(engine);
}

// A request that found no pages beside a lease finds them when the lease has ended.
TEST_F(EngineTest, ARequestWaitsForALeaseToEnd) {
  const auto engine = make(2, 8);
  const auto session = engine.session();
  gate_.close();
  std::thread lease([&] {
    const auto logits = engine.core->logits(*engine.core->find_model({}), prompt(100), LogitsRows::kLast, 10);
    EXPECT_TRUE(logits) << logits.error().message;
  });
  ASSERT_TRUE(gate_.wait_arrived(1));
  auto stream = session.stream(token_request(prompt(40), 10));
  ASSERT_TRUE(stream);
  gate_.open();
  lease.join();
  EXPECT_EQ(read(*stream).token_ids.size(), 10u);
  expect_all_free(engine);
}

TEST_F(EngineTest, ManyWhoAskDoNotKeepTheStepsOut) {
  const auto engine = make(2);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, tenant = engine.tenant("alice")] {
      while (!stop) static_cast<void>(tenant.ledger()), static_cast<void>(engine.core->stats());
    });
  const auto result = engine.session().generate(token_request(prompt(20), 50));
  stop = true;
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->token_ids.size(), 50u);
}

class Faults : public EngineTest, public ::testing::WithParamInterface<bool> {};

// Those of the step that fails end; who waits, and who comes later, sees nothing of it.
TEST_P(Faults, EndTheRequestsOfTheirStepAlone) {
  auto options = small_options();
  options.max_slots = 3;
  auto probe = std::make_shared<Probe>();
  std::atomic<std::uint64_t> fault_at = 0;
  const auto fault = [&](const StepInput&, std::uint64_t n) -> Status {
    gate_.pass();
    if (n != fault_at) return {};
    return std::unexpected(Error{StatusCode::kInternal, "[test] a fault was asked for", 0});
  };
  (GetParam() ? probe->after : probe->before) = fault;
  const auto engine = start_engine("llama_spm-f32", options, {}, probe);
  const auto session = engine.session("a", quota("batch", 8));  // whose steps may take any time
  const auto request = token_request(prompt(40), 20);
  const auto alone = session.generate(request);
  ASSERT_TRUE(alone && engine.tenant("a").flush_prefix_cache());
  gate_.close();
  const auto n = gate_.n_arrived();
  std::vector<Stream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(*session.stream(request));
  gate_.let(9);
  ASSERT_TRUE(gate_.wait_arrived(n + 10));
  ASSERT_EQ(engine.core->find_model({})->n_queued, 2u);
  fault_at = probe->n_steps + 1;
  gate_.open();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Result<std::optional<StreamEvent>> event;
    do event = streams[i].next();
    while (event && *event);
    const auto got = streams[i].completion();
    EXPECT_EQ(event.has_value(), i >= 3) << i;
    EXPECT_TRUE(event || event.error().code == StatusCode::kInternal);
    const std::size_t wanted = i < 3 ? got.token_ids.size() : 20;
    EXPECT_GT(got.token_ids.size(), 0u);
    EXPECT_EQ(got.token_ids, std::vector(alone->token_ids.begin(), alone->token_ids.begin() + std::ptrdiff_t(wanted)));
    EXPECT_EQ(got.logits_hashes,
              std::vector(alone->logits_hashes.begin(), alone->logits_hashes.begin() + std::ptrdiff_t(wanted)));
  }
  EXPECT_EQ(session.generate(request)->logits_hashes, alone->logits_hashes);
  EXPECT_EQ(engine.tenant("a").ledger().requests_failed, 3u);
  expect_all_free(engine);
}

INSTANTIATE_TEST_SUITE_P(When, Faults, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AfterTheStep" : "BeforeTheStep"; });

}  // namespace
}  // namespace zinc_rt
