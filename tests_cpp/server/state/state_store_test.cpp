// The ledger: sums, what was made at run time, files of others.
#include "server/state/state_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace zinc_rt::server {
namespace {

class StateStoreTest : public ::testing::Test {
 protected:
  StateStoreTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zrt_state_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StateStoreTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "deep" / "state.db").string(); }
  std::filesystem::path folder_;
};

TEST_F(StateStoreTest, SumsAreThoseOfTheRowsAfterAllIsOpenedAgain) {
  constexpr int kThreads = 4, kRows = 200;
  std::atomic<int> n_committed{0};
  {
    auto store = StateStore::open(file());
    ASSERT_TRUE(store) << store.error().message;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRows; ++i)
          (*store)->record({std::to_string(t) + "-" + std::to_string(i), i % 2 == 0 ? "a" : "b", "m", "/x", "stop",
                            1000000 + i, 10, 3, 2},
                           [&] { ++n_committed; });
      });
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(n_committed, kThreads * kRows);  // none is left behind when it closes
  auto store = StateStore::open(file());
  ASSERT_TRUE(store);
  for (const char* tenant : {"a", "b"}) {
    const auto totals = (*store)->totals(tenant);
    ASSERT_TRUE(totals);
    ASSERT_EQ(totals->size(), 1u);
    EXPECT_EQ(totals->front().requests, kThreads * kRows / 2u);
    EXPECT_EQ(totals->front().prompt_tokens, 10u * kThreads * kRows / 2);
    EXPECT_EQ(totals->front().cached_tokens, 3u * kThreads * kRows / 2);
    EXPECT_EQ(totals->front().completion_tokens, 2u * kThreads * kRows / 2);
    EXPECT_EQ(totals->front().day, "1970-01-12");
  }
  EXPECT_TRUE((*store)->totals("nobody")->empty());
}

TEST_F(StateStoreTest, ATenantKeepsItsSettingsAndKeysUntilItIsRemoved) {
  {
    auto store = StateStore::open(file());
    ASSERT_TRUE((*store)->put_tenant({"t", "{}", {{"k1", 5}, {"k2", 6}}}));
    ASSERT_TRUE((*store)->put_tenant({"t", "{\"a\":1}", {{"k2", 6}, {"k3", 7}}}));
    ASSERT_TRUE((*store)->put_tenant({"u", "{}", {}}));
    ASSERT_TRUE((*store)->remove_tenant("u"));
  }
  auto store = StateStore::open(file());
  const auto tenants = (*store)->tenants();
  ASSERT_EQ(tenants->size(), 1u);
  EXPECT_EQ(tenants->front().settings, "{\"a\":1}");
  ASSERT_EQ(tenants->front().keys.size(), 2u);
  EXPECT_EQ(tenants->front().keys[0].hash, "k2");
  EXPECT_EQ(tenants->front().keys[1].made_s, 7);
}

TEST_F(StateStoreTest, AFileThatIsNoneOfOursIsRefused) {
  std::filesystem::create_directories(folder_ / "deep");
  std::ofstream(file()) << std::string(5000, 'x');
  const auto store = StateStore::open(file());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, StatusCode::kCorrupt);
  EXPECT_NE(store.error().message.find("--state"), std::string::npos);
}

TEST_F(StateStoreTest, ARowThatCannotBeWrittenIsToldAndWrittenLater) {
  auto store = StateStore::open(file());
  ASSERT_TRUE(store) << store.error().message;
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::atomic<int> n{0};
  (*store)->record({"id", "a", "m", "/x", "stop", 0, 1, 0, 1}, [&] { ++n; });
  while (n < 1) std::this_thread::yield();
  EXPECT_NE((*store)->trouble().find("locked"), std::string::npos) << (*store)->trouble();
  EXPECT_TRUE((*store)->totals("a")->empty());
  const auto refused = (*store)->put_tenant({"t", "{}", {}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("locked"), std::string::npos) << refused.error().message;
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  while (!(*store)->trouble().empty()) std::this_thread::yield();  // without another row
  EXPECT_EQ((*store)->totals("a")->front().requests, 1u);
}

UsageRow row(const std::string& id) {
  return {id, "a", "m", "/x", "stop", 1000000, 10, 3, 2};
}

// And waits until it is written, or was refused.
void record(StateStore& store, const std::string& id) {
  std::atomic<bool> is_done{false};
  store.record(row(id), [&] { is_done = true; });
  while (!is_done) std::this_thread::yield();
}

std::uint64_t n_requests(StateStore& store) {
  const auto totals = store.totals("a");
  EXPECT_TRUE(totals) << totals.error().message;
  return totals && !totals->empty() ? totals->front().requests : 0;
}

TEST_F(StateStoreTest, ADamagedFileIsRefusedAtTheStart) {
  {
    auto store = StateStore::open(file());
    ASSERT_TRUE(store) << store.error().message;
    for (int i = 0; i < 500; ++i) (*store)->record(row(std::to_string(i)), [] {});
    ASSERT_TRUE((*store)->close());
  }
  const auto size = std::filesystem::file_size(file());
  {
    std::fstream damaged(file(), std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(4096);  // the first page, with the header and the schema, stays
    for (auto at = std::uintmax_t{4096}; at < size; ++at) damaged.put(static_cast<char>(at * 2654435761u >> 7));
  }
  const auto refused = StateStore::open(file());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kCorrupt);
  EXPECT_NE(refused.error().message.find("is damaged"), std::string::npos) << refused.error().message;
  EXPECT_EQ(std::filesystem::file_size(file()), size);  // nothing was set aside or mended behind its owner's back
}

TEST_F(StateStoreTest, DamageWhileItRunsIsNoEmptyAnswer) {
  auto store = StateStore::open(file());
  ASSERT_TRUE(store) << store.error().message;
  record(**store, "1");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "DROP TABLE totals", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_FALSE((*store)->totals("a"));
}

TEST_F(StateStoreTest, AFileThatIsRemovedIsWrittenAnew) {
  for (const bool is_folder_emptied : {false, true}) {
    const auto path = file() + (is_folder_emptied ? "2" : "1");
    auto store = StateStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    record(**store, "before");
    std::filesystem::remove(path);
    if (is_folder_emptied)
      for (const char* ending : {"-wal", "-shm"}) std::filesystem::remove(path + ending);
    record(**store, "after");
    while (!std::filesystem::exists(path)) std::this_thread::yield();
    EXPECT_EQ(n_requests(**store), 2u);
    EXPECT_EQ((*store)->trouble(), "");
    ASSERT_TRUE((*store)->close());
    store->reset();
    const auto again = StateStore::open(path);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(n_requests(**again), 2u);
  }
}

TEST_F(StateStoreTest, BesideAFileThatTookItsPlaceNothingIsWritten) {
  auto store = StateStore::open(file());
  ASSERT_TRUE(store) << store.error().message;
  std::filesystem::rename(file(), file() + ".mine");
  std::ofstream(file()) << "another's";
  record(**store, "1");
  EXPECT_NE((*store)->trouble().find("was replaced"), std::string::npos) << (*store)->trouble();
  std::filesystem::rename(file() + ".mine", file());
  while (!(*store)->trouble().empty()) std::this_thread::yield();
  EXPECT_EQ(n_requests(**store), 1u);
}

TEST_F(StateStoreTest, RowsThatAreMissingAtTheEndAreAnError) {
  auto store = StateStore::open(file());
  ASSERT_TRUE(store) << store.error().message;
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  for (int i = 0; i < 3; ++i) (*store)->record(row(std::to_string(i)), [] {});
  testing::internal::CaptureStderr();
  const auto closed = (*store)->close();
  const auto logged = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("3 requests are missing"), std::string::npos) << closed.error().message;
  for (int i = 0; i < 3; ++i)
    EXPECT_NE(logged.find(fmt::format(R"({{"id":"{}","time_s":1000000,"tenant":"a")", i)), std::string::npos) << logged;
  EXPECT_TRUE((*store)->close());
  sqlite3_close(other);
}

TEST_F(StateStoreTest, ARowCountsOnce) {
  auto store = StateStore::open("");
  std::atomic<int> n{0};
  for (int i = 0; i < 2; ++i) (*store)->record({"same", "a", "m", "/x", "stop", 0, 1, 0, 1}, [&] { ++n; });
  while (n < 2) std::this_thread::yield();
  EXPECT_EQ((*store)->trouble(), "");
  EXPECT_EQ((*store)->totals("a")->front().requests, 1u);
}

}  // namespace
}  // namespace zinc_rt::server
