#include "engine/timeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace zinc_rt {
namespace {

using nlohmann::json;

class TimelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("zrt_timeline_" + std::string(test->name()) + std::to_string(::getpid()) + ".json");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string written() {
    const Status status = timeline_.write_json(path_);
    EXPECT_TRUE(status) << status.error().message;
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  Timeline timeline_;
  std::string path_;
};

StepSpan step(std::uint64_t index, std::uint64_t begin_us, std::uint32_t us) {
  return {index, begin_us, us, us, us, 10 * us, us, 3, 5, 7, 11};
}

// The whole text of a tiny timeline: a change of it is a change of what tools read.
TEST_F(TimelineTest, GoldenText) {
  timeline_.name_tenant(4, "al\"ice");
  ASSERT_TRUE(timeline_.start(16));
  timeline_.record(RequestSpan{77, 100, 150, 4, 0, 0, RequestState::kWaiting});
  timeline_.record(RequestInstant{77, 150, 4, RequestMark::kAdmitted});
  timeline_.record(StepSpan{1, 150, 2, 3, 4, 500, 0, 0, 16, 1, 9});
  timeline_.record(RequestSpan{77, 150, 659, 4, 2, 16, RequestState::kPrefill});
  EXPECT_EQ(written(), R"({"displayTimeUnit":"ms","otherData":{"records":4,"dropped_records":0},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"engine"}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"steps"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":4,"args":{"name":"slot 2"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":4,"args":{"sort_index":4}},
{"ph":"M","name":"process_name","pid":2,"args":{"name":"tenants"}},
{"ph":"M","name":"thread_name","pid":2,"tid":5,"args":{"name":"al\"ice"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":5,"args":{"sort_index":5}},
{"ph":"b","cat":"request","name":"WAITING","id":"0x4d","pid":2,"tid":5,"ts":100},
{"ph":"e","cat":"request","name":"WAITING","id":"0x4d","pid":2,"tid":5,"ts":150},
{"ph":"i","s":"t","name":"admitted","pid":2,"tid":5,"ts":150,"args":{"request":77}},
{"ph":"X","name":"step","pid":1,"tid":1,"ts":150,"dur":509,"args":{"index":1,"decode":0,"prefill":16,"waiting":1,"pages":9}},
{"ph":"X","name":"admit","pid":1,"tid":1,"ts":150,"dur":2},
{"ph":"X","name":"plan","pid":1,"tid":1,"ts":152,"dur":3},
{"ph":"X","name":"fill","pid":1,"tid":1,"ts":155,"dur":4},
{"ph":"X","name":"execute","pid":1,"tid":1,"ts":159,"dur":500},
{"ph":"C","name":"pages","pid":1,"ts":150,"args":{"pages":9}},
{"ph":"C","name":"waiting","pid":1,"ts":150,"args":{"waiting":1}},
{"ph":"X","name":"PREFILL","pid":1,"tid":4,"ts":150,"dur":509,"args":{"request":77,"tenant":4,"tokens":16}}
]}
)");
}

// Thousands of steps and spans that end out of order: on each track times grow, spans nest or follow each other, every
// "b" has its "e", and phases fill their step.
TEST_F(TimelineTest, TracksNestAndAreInOrder) {
  ASSERT_TRUE(timeline_.start(1 << 16));
  std::mt19937 random(5);
  std::uint64_t now = 1'000'000'000'000;
  constexpr std::uint64_t kSteps = 2000, kSlots = 4;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    const auto us = static_cast<std::uint32_t>(1 + random() % 300);
    timeline_.record(step(i, now, us));
    for (std::uint32_t slot = 0; slot < kSlots; ++slot)
      timeline_.record(RequestSpan{slot, now, now + 14 * us, slot % 2, slot, 1,
                                   i % 3 ? RequestState::kDecode : RequestState::kPrefill});
    timeline_.record(RequestSpan{1000 + i, now - 500, now + us, 1, 0, 0, RequestState::kPreempted});
    timeline_.record(RequestInstant{1000 + i, now + us, 1, RequestMark::kPreempted});
    now += 14 * us + random() % 50;
  }
  const json trace = json::parse(written());
  std::map<std::pair<int, int>, std::vector<std::pair<std::uint64_t, std::uint64_t>>> open;  // spans under way a track
  std::map<std::pair<int, int>, std::uint64_t> last;
  std::map<std::string, std::uint64_t> begun;
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t step_us = 0, phase_us = 0;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph"), name = event.at("name");
    ++counts[phase];
    if (phase == "M") continue;
    const std::uint64_t ts = event.at("ts");
    if (phase == "C") continue;
    const std::pair<int, int> track(event.at("pid"), event.at("tid"));
    if (phase == "b") {
      EXPECT_TRUE(begun.emplace(event.at("id"), ts).second);
    } else if (phase == "e") {
      const auto found = begun.find(event.at("id"));
      ASSERT_NE(found, begun.end());
      EXPECT_LE(found->second, ts);
      begun.erase(found);
    } else {
      ASSERT_GE(ts, last[track]);
      last[track] = ts;
    }
    if (phase != "X") continue;
    const std::uint64_t dur = event.at("dur"), end = ts + dur;
    if (track == std::pair(1, 1)) (name == "step" ? step_us : phase_us) += dur;
    auto& stack = open[track];
    while (!stack.empty() && stack.back().second <= ts) stack.pop_back();
    if (!stack.empty()) {
      ASSERT_EQ(track, std::pair(1, 1)) << "only phases lie in another span";
      ASSERT_NE(name, "step");
      ASSERT_LE(end, stack.back().second);
    }
    stack.emplace_back(ts, end);
  }
  EXPECT_TRUE(begun.empty());
  EXPECT_EQ(step_us, phase_us);
  EXPECT_EQ(counts["X"], kSteps * (6 + kSlots));
  EXPECT_EQ(counts["C"], 2 * kSteps);
  EXPECT_EQ(counts["b"], kSteps);
  EXPECT_EQ(counts["e"], kSteps);
  EXPECT_EQ(counts["i"], kSteps);
}

TEST_F(TimelineTest, TheNewestRecordsStay) {
  ASSERT_TRUE(timeline_.start(8));
  for (std::uint64_t i = 0; i < 21; ++i) timeline_.record(step(i, i * 100, 1));
  EXPECT_EQ(timeline_.n_records(), 8u);
  EXPECT_EQ(timeline_.n_dropped(), 13u);
  const json trace = json::parse(written());
  EXPECT_EQ(trace.at("otherData").at("dropped_records"), 13);
  std::vector<std::uint64_t> indices;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("name") == "step") indices.push_back(event.at("args").at("index"));
  EXPECT_EQ(indices, (std::vector<std::uint64_t>{13, 14, 15, 16, 17, 18, 19, 20}));
}

TEST_F(TimelineTest, RequestsHaveTheirNamesByModel) {
  timeline_.name_request(0, 7, {"too early", ""});
  ASSERT_TRUE(timeline_.start(4));
  timeline_.name_request(0, 7, {"a \"name\" \xff", ""});
  timeline_.name_request(1, 7, {"of another model", ""});
  timeline_.name_request(1, 7, {"its last one", "00-ab-cd-01"});
  timeline_.record(RequestInstant{7, 10, 0, RequestMark::kAdmitted, 0});
  timeline_.record(RequestSpan{7, 20, 30, 0, 0, 1, RequestState::kDecode, 1});
  timeline_.record(RequestInstant{8, 40, 0, RequestMark::kAdmitted, 1});
  std::vector<json> arguments;
  const auto read = [&] {
    arguments.clear();
    const auto trace = json::parse(written());
    for (const auto& event : trace["traceEvents"])
      if (event.value("ph", "") != "M") arguments.push_back(event["args"]);
  };
  read();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0]["request_id"], "a \"name\" \xEF\xBF\xBD");
  EXPECT_EQ(arguments[1]["request_id"], "its last one");
  EXPECT_EQ(arguments[1]["traceparent"], "00-ab-cd-01");
  EXPECT_FALSE(arguments[0].contains("traceparent"));
  EXPECT_FALSE(arguments[2].contains("request_id"));
  for (std::uint64_t i = 100; i < 103; ++i)
    timeline_.name_request(0, i, {"later", ""});  // there is room for four names
  read();
  EXPECT_FALSE(arguments[0].contains("request_id"));
  EXPECT_TRUE(arguments[1].contains("request_id"));
}

TEST_F(TimelineTest, OnlyBetweenStartAndStop) {
  timeline_.record(step(0, 0, 1));
  EXPECT_EQ(timeline_.n_records(), 0u);
  EXPECT_TRUE(json::parse(written()).at("traceEvents").is_array());  // before any start: just the names of tracks
  const Status refused = timeline_.start(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kInvalidArgument);
  EXPECT_FALSE(timeline_.is_on());
  ASSERT_TRUE(timeline_.start(4));
  timeline_.record(step(1, 0, 1));
  timeline_.stop();
  timeline_.record(step(2, 0, 1));
  EXPECT_EQ(timeline_.n_records(), 1u);
  ASSERT_TRUE(timeline_.start(4));
  EXPECT_EQ(timeline_.n_records(), 0u);
}

TEST_F(TimelineTest, OddInputs) {
  timeline_.name_tenant(0, "\xff\xfe line\nbreak");
  ASSERT_TRUE(timeline_.start(8));
  timeline_.record(RequestSpan{~0ull, 500, 400, 0, ~0u, 0, RequestState::kDecode});  // ends before it begins
  timeline_.record(RequestSpan{1, 500, 400, ~0u, 0, 0, RequestState::kWaiting});
  const json trace = json::parse(written());
  bool seen = false;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("name") == "DECODE") {
      seen = true;
      EXPECT_EQ(event.at("dur"), 0);
      EXPECT_EQ(event.at("tid"), 0x100000001ull);
      EXPECT_EQ(event.at("args").at("request"), ~0ull);
    }
  EXPECT_TRUE(seen);
  const Status nowhere = timeline_.write_json("/no/such/folder/trace.json");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, StatusCode::kNotFound);
}

// For the thread sanitizer: the step thread records while others start, stop, name and write.
TEST_F(TimelineTest, StartsAndStopsWhileRecording) {
  std::atomic<bool> done{false};
  std::jthread steps([&] {
    for (std::uint64_t i = 0; !done; ++i) timeline_.record(step(i, i * 10, 1));
  });
  for (int round = 0; round < 30; ++round) {
    ASSERT_TRUE(timeline_.start(static_cast<std::uint32_t>(1 + round * 10)));
    timeline_.name_tenant(static_cast<std::uint32_t>(round), "t");
    EXPECT_LE(timeline_.n_records(), static_cast<std::uint64_t>(1 + round * 10));
    EXPECT_TRUE(json::parse(written()).is_object());
    timeline_.stop();
    const auto n = timeline_.n_records();
    std::this_thread::yield();
    EXPECT_EQ(timeline_.n_records(), n);
  }
  done = true;
}

}  // namespace
}  // namespace zinc_rt
