// Runs of batches on a server without a model, where each line is answered with a 404.
#include "server/batches/batch_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "server/core.h"

namespace zinc_rt::server {
namespace {

class BatchRunTest : public ::testing::Test {
 protected:
  BatchRunTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zrt_run_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    auto engine = Engine::start();
    auto store = StateStore::open("");
    EXPECT_TRUE(engine && store);
    core_ = std::make_unique<ServerCore>(std::move(*engine), std::move(*store), "0");
    core_->last_alive_ms = steady_ms();
    EXPECT_TRUE(core_->tenants.configure({}, {}));
    add_generation_routes(router_, *core_);
  }
  ~BatchRunTest() override {
    EXPECT_TRUE(core_->close());
    std::filesystem::remove_all(folder_);
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  void write_input(int n) const {
    std::ofstream out(path("in"));
    for (int i = 0; i < n; ++i)
      out << fmt::format(R"({{"custom_id":"{}","method":"POST","url":"/v1/completions","body":{{"prompt":"a"}}}})", i)
          << '\n';
  }
  Result<std::shared_ptr<BatchRun>> open(std::uint64_t most_bytes = UINT64_MAX) {
    return BatchRun::open(*core_, router_,
                          {path("in"), path("out"), path("errors"), "", core_->tenants.find("default"),
                           [most_bytes](std::uint64_t n_bytes) { return n_bytes <= most_bytes; }, [] {}});
  }
  static void run_to_end(BatchRun& run) {
    while (!run.step()) std::this_thread::yield();
    EXPECT_TRUE(run.sync());
  }
  // The lines of a file, by custom_id, of which none is there twice.
  std::map<std::string, Json> lines_of(const char* name) const {
    std::map<std::string, Json> lines;
    std::ifstream in(path(name));
    for (std::string text; std::getline(in, text);) {
      auto line = Json::parse(text);
      const auto id = line["custom_id"].get<std::string>();
      EXPECT_TRUE(lines.emplace(id, std::move(line)).second) << id;
    }
    return lines;
  }

  std::filesystem::path folder_;
  std::unique_ptr<ServerCore> core_;
  Router router_;
};

TEST_F(BatchRunTest, EachLineIsAnsweredOnce) {
  write_input(100);
  auto run = open();
  ASSERT_TRUE(run) << run.error().message;
  run_to_end(**run);
  EXPECT_EQ((*run)->counts().completed, 0u);
  EXPECT_EQ((*run)->counts().failed, 100u);
  const auto errors = lines_of("errors");
  EXPECT_EQ(errors.size(), 100u);
  for (const auto& [id, line] : errors) EXPECT_EQ(line["response"]["status_code"], 404) << line.dump();
  EXPECT_TRUE(lines_of("out").empty());
}

TEST_F(BatchRunTest, ARunGoesOnWhereAnEarlierOneWasBrokenOff) {
  write_input(100);
  {
    auto run = open();
    ASSERT_TRUE(run);
    while ((*run)->counts().failed < 10) (*run)->step();
    (*run)->abandon();
    while ((*run)->n_under_way() > 0) EXPECT_FALSE((*run)->step());
    EXPECT_FALSE((*run)->step());
  }
  const auto before = lines_of("errors").size();
  EXPECT_GE(before, 10u);
  EXPECT_LT(before, 100u);
  std::ofstream(path("errors"), std::ios::app) << R"({"id":"batch_req_1","custom_id":"99","respo)";
  auto run = open();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ((*run)->counts().failed, before);
  run_to_end(**run);
  EXPECT_EQ(lines_of("errors").size(), 100u);
}

TEST_F(BatchRunTest, NothingIsStartedWhileTheServerDrains) {
  write_input(3);
  core_->is_draining = true;
  auto run = open();
  ASSERT_TRUE(run);
  EXPECT_FALSE((*run)->step());
  EXPECT_EQ((*run)->n_under_way(), 0u);
  core_->is_draining = false;
  run_to_end(**run);
  EXPECT_EQ(lines_of("errors").size(), 3u);
}

TEST_F(BatchRunTest, LinesThatWereNotRunSayWhy) {
  write_input(5);
  auto run = open();
  ASSERT_TRUE(run);
  (*run)->end_early(BatchEnding::kExpired);
  (*run)->end_early(BatchEnding::kCancelled);  // the first reason stays
  run_to_end(**run);
  EXPECT_EQ(lines_of("errors").size(), 5u);
  for (const auto& [id, line] : lines_of("errors")) EXPECT_EQ(line["error"]["code"], "batch_expired");
}

TEST_F(BatchRunTest, ThereIsABoundOnWhatIsWritten) {
  write_input(200);
  auto run = open(1000);
  ASSERT_TRUE(run);
  run_to_end(**run);
  EXPECT_EQ((*run)->ending(), BatchEnding::kFull);
  const auto errors = lines_of("errors");
  EXPECT_EQ(errors.size(), 200u);
  const auto n_full = std::ranges::count_if(errors, [](const auto& one) {
    return one.second["error"].is_object() && one.second["error"]["code"] == "storage_limit_exceeded";
  });
  EXPECT_GT(n_full, 0);
  EXPECT_LT(n_full, 200);
}

TEST_F(BatchRunTest, OutputOfAnotherBatchIsRefused) {
  write_input(2);
  std::ofstream(path("out")) << unanswered_line("1", "other", "c", "m") << '\n';
  const auto run = open();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, StatusCode::kInvalidArgument);
  EXPECT_NE(run.error().message.find("another batch's"), std::string::npos) << run.error().message;
  std::ofstream(path("out")) << unanswered_line("1", "0", "c", "m") << '\n'
                             << unanswered_line("2", "0", "c", "m") << '\n';
  const auto twice = open();
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, StatusCode::kCorrupt);
}

// Conversations that requests hold: 400 for what could never be held, 429 and 503 for what may be later.
TEST_F(BatchRunTest, ConversationsAreCountedForTheirTenantAndInAll) {
  core_->parsed = std::make_shared<ByteBudget>(ByteBudget::Limits{250, SIZE_MAX, 100});
  Exchange exchange;
  exchange.caller.tenant = core_->tenants.find("default");
  const auto status = [](const ApiResult<void>& held) { return held ? 200 : held.error().status; };
  ByteBudget::Hold first, second, third;
  EXPECT_EQ(status(hold_parsed(*core_, exchange, first, 70)), 200);
  const auto never = hold_parsed(*core_, exchange, second, 101);
  ASSERT_EQ(status(never), 400);
  EXPECT_NE(never.error().message.find("takes 101 bytes as it is parsed, 100 allowed"), std::string::npos);
  const auto later = hold_parsed(*core_, exchange, second, 40);
  ASSERT_EQ(status(later), 429);
  EXPECT_EQ(later.error().retry_after_s, 1);
  EXPECT_EQ(status(hold_parsed(*core_, exchange, first, 60)), 200);  // what it holds is not counted twice
  EXPECT_EQ(status(hold_parsed(*core_, exchange, second, 40)), 200);
  ByteBudget::Hold others[] = {{core_->parsed, "", "bob"}, {core_->parsed, "", "carol"}};
  for (auto& hold : others) EXPECT_EQ(hold.resize(75), ByteBudget::Full::kNo);
  second.release();
  first.release();
  EXPECT_EQ(core_->parsed->held(), 150u);
  ByteBudget::Hold dave(core_->parsed, "", "dave");
  EXPECT_EQ(dave.resize(20), ByteBudget::Full::kNo);
  EXPECT_EQ(status(hold_parsed(*core_, exchange, third, 90)), 503);
}

}  // namespace
}  // namespace zinc_rt::server
