// Files and batches in the state file: pages, sums, files of earlier versions, and who waits for whom.
#include "server/state/object_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/batches/batch_object.h"
#include "server/batches/stored_files.h"
#include "server/state/state_store.h"

namespace zinc_rt::server {
namespace {

class ObjectTableTest : public ::testing::Test {
 protected:
  ObjectTableTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zrt_objects_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ObjectTableTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "state.db").string(); }
  std::filesystem::path folder_;
};

StoredObject object(const std::string& tenant, int i, const std::string& label = "batch") {
  return {kFileKind, tenant, fmt::format("id-{}", i), 1000 + i / 2, label, 7, fmt::format(R"({{"n":{}}})", i)};
}

std::vector<std::string> ids_of_page(const Result<std::optional<ObjectPage>>& page) {
  std::vector<std::string> out;
  if (!page || !*page) return {"none"};
  for (const auto& one : (*page)->objects) out.push_back(one.id);
  return out;
}

using Ids = std::vector<std::string>;

TEST_F(ObjectTableTest, PagesGoOnBehindTheLastIdInBothOrders) {
  for (const auto& path : {file(), std::string()}) {  // with a reader of its own, and in memory
    auto store = StateStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    auto& table = (*store)->objects();
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(table.put(object("a", i, i == 3 ? "other" : "batch")));
    ASSERT_TRUE(table.put(object("b", 9)));
    const auto page = [&](const std::string& after, bool is_ascending, std::size_t limit,
                          const std::string& label = {}) {
      return table.page({kFileKind, "a", label, after, is_ascending, limit});
    };
    EXPECT_EQ(ids_of_page(page("", true, 4)), (Ids{"id-0", "id-1", "id-2", "id-3"}));
    EXPECT_TRUE((*page("", true, 4))->has_more);
    EXPECT_EQ(ids_of_page(page("id-3", true, 4)), (Ids{"id-4", "id-5"}));
    EXPECT_FALSE((*page("id-3", true, 2))->has_more);
    EXPECT_EQ(ids_of_page(page("", false, 2)), (Ids{"id-5", "id-4"}));
    EXPECT_EQ(ids_of_page(page("id-4", false, 9)), (Ids{"id-3", "id-2", "id-1", "id-0"}));
    EXPECT_EQ(ids_of_page(page("id-4", false, 9, "batch")), (Ids{"id-2", "id-1", "id-0"}));
    EXPECT_EQ(ids_of_page(page("id-0", false, 9)), Ids());
    EXPECT_FALSE(*page("id-9", true, 9));  // another tenant's
    const auto sum = table.sum(kFileKind, "a");
    ASSERT_TRUE(sum) << sum.error().message;
    EXPECT_EQ(sum->n_objects, 6u);
    EXPECT_EQ(sum->n_bytes, 6 * (7 + object("a", 0).body.size()));
    EXPECT_EQ(table.sum(kFileKind, "nobody")->n_bytes, 0u);
    EXPECT_EQ(table.names(kFileKind, "", 1001)->size(), 2u);
    EXPECT_EQ(table.names(kFileKind, "b")->size(), 1u);
    const char* labels[] = {"other", "none"};
    ASSERT_EQ(table.labelled(kFileKind, labels)->size(), 1u);
    EXPECT_EQ(table.labelled(kFileKind, labels)->front().body, R"({"n":3})");
    EXPECT_TRUE(*table.remove(kFileKind, "a", "id-3"));
    EXPECT_FALSE(*table.remove(kFileKind, "a", "id-3"));
    EXPECT_EQ(table.sum(kFileKind, "a")->n_objects, 5u);
    ASSERT_TRUE((*store)->remove_tenant("a"));
    EXPECT_EQ(table.sum(kFileKind, "a")->n_objects, 0u);
    EXPECT_EQ(table.sum(kFileKind, "b")->n_objects, 1u);
  }
}

// What a query does, step by step, as SQLite tells it.
std::string plan_of(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  std::string out;
  {
    Statement statement(db, ("EXPLAIN QUERY PLAN " + sql).c_str());
    while (statement.step()) out += statement.text(3) + "\n";
  }
  EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
  return out;
}

TEST_F(ObjectTableTest, SumsAndOrdersReadNoTextsOfRows) {
  ASSERT_TRUE(StateStore::open(file()));
  for (const char* sql : {"SELECT COUNT(*), SUM(size) FROM objects WHERE tenant = 'a' AND kind = 'file'",
                          "SELECT id, SUM(size) OVER (ORDER BY time_s DESC, id DESC) AS total FROM responses "
                          "WHERE tenant = 'a'"})
    EXPECT_NE(plan_of(file(), sql).find("COVERING INDEX"), std::string::npos) << plan_of(file(), sql);
  for (const char* order : {"ASC", "DESC"}) {
    const auto plan = plan_of(
        file(), fmt::format("SELECT body FROM objects WHERE tenant = 'a' AND kind = 'file' AND (time_s, id) > (1, 'b') "
                            "ORDER BY time_s {0}, id {0} LIMIT 3",
                            order));
    EXPECT_NE(plan.find("objects_by_tenant"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << plan;  // nothing is sorted
  }
}

// A writer holds the ledger's lock until the reads are done, which see what was committed before.
TEST_F(ObjectTableTest, ReadsDoNotWaitForAWriter) {
  std::atomic<bool> reads{true};
  int n_read = 0;
  StateFile file_of_ours;
  ASSERT_TRUE(file_of_ours.open(file()));
  ASSERT_TRUE(ObjectTable(file_of_ours).put(object("a", 1)));
  std::atomic<bool> writes{false};
  std::thread writer([&] {
    EXPECT_TRUE(file_of_ours.in_transaction([&] {
      writes = true;
      while (reads) std::this_thread::yield();
      return true;
    }));
  });
  while (!writes) std::this_thread::yield();
  ObjectTable table(file_of_ours);
  for (int i = 0; i < 3; ++i) {
    n_read += static_cast<int>(table.page({kFileKind, "a", "", "", true, 10})->value().objects.size());
    n_read += static_cast<int>(table.sum(kFileKind, "a")->n_objects);
    n_read += static_cast<int>(table.find(kFileKind, "a", "id-1")->has_value());
  }
  reads = false;
  writer.join();
  EXPECT_EQ(n_read, 9);
}

TEST_F(ObjectTableTest, AFileOfVersion2IsBroughtUpToDate) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
  const auto body = std::string(R"({"id":"f","bytes":1000,"purpose":"batch"})");
  const auto sql = fmt::format(
      "CREATE TABLE responses (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, time_s INTEGER NOT NULL, body TEXT NOT NULL) "
      "WITHOUT ROWID; CREATE INDEX responses_by_tenant ON responses (tenant, time_s);"
      "CREATE TABLE objects (kind TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, time_s INTEGER NOT NULL, "
      "body TEXT NOT NULL, PRIMARY KEY (kind, tenant, id)) WITHOUT ROWID;"
      "INSERT INTO objects VALUES ('file', 'a', 'f', 5, '{}'), ('batch', 'a', 'b', 6, '{{\"status\":\"validating\"}}'),"
      " ('batch', 'a', 'broken', 7, 'x');"
      "INSERT INTO responses VALUES ('r', 'a', {}, '{{}}'); PRAGMA user_version = 2",
      body, std::time(nullptr));
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
  for (int start = 0; start < 2; ++start) {
    auto store = StateStore::open(file());
    ASSERT_TRUE(store) << store.error().message;
    auto& table = (*store)->objects();
    EXPECT_EQ(table.sum(kFileKind, "a")->n_bytes, 1000 + body.size());
    const auto open = table.labelled(kBatchKind, unfinished_statuses());
    ASSERT_EQ(open->size(), 1u);
    EXPECT_EQ(open->front().id, "b");
    EXPECT_EQ((*table.find(kFileKind, "a", "f"))->label, "batch");
    EXPECT_EQ(*(*store)->response("a", "r"), "{}");
  }
}

TEST_F(ObjectTableTest, TheErrorsOfABatchTakeABoundedRow) {
  std::vector<LineError> errors;
  for (int i = 1; i <= 100; ++i)
    errors.push_back({static_cast<std::uint64_t>(i), "invalid_line", std::string(kMostErrorBytes, '\1'), "x"});
  const auto list = error_list(errors);
  EXPECT_LE(list.dump().size(), kMostErrorListBytes + 512);
  const auto& last = list["data"].back();
  EXPECT_EQ(last["code"], "more_errors");
  EXPECT_EQ(last["message"], fmt::format("{} more errors are not shown: {} bytes are allowed for all",
                                         101 - list["data"].size(), kMostErrorListBytes));
  errors.resize(3);
  EXPECT_EQ(error_list(errors)["data"].size(), 3u);
}

TEST_F(ObjectTableTest, WhatALineSaysIsCutInItsError) {
  const std::string long_name(10000, 'u');
  const auto path = file();
  {
    std::ofstream out(path);
    out << R"({"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{},")" << long_name << "\":1}\n";
    for (int i = 0; i < 2; ++i)
      out << R"({"custom_id":")" << std::string(kMostCustomIdBytes, 'c')
          << R"(","method":"POST","url":"/v1/chat/completions","body":{}})" << '\n';
    out << R"({"custom_id":"2","method":"POST","url":")" << std::string(250, '/') << R"(","body":{}})" << '\n';
  }
  const auto check = check_batch_file(path, "/v1/chat/completions");
  ASSERT_TRUE(check) << check.error().message;
  ASSERT_EQ(check->errors.size(), 3u);
  for (const auto& error : check->errors) {
    EXPECT_LE(error.message.size(), kMostErrorBytes + 3) << error.message;
    EXPECT_LE(error.param.size(), kMostErrorBytes);
    EXPECT_NE(error.message.find(fmt::format("line {}: ", error.line)), std::string::npos);
  }
}

// What a tenant may have covers the rows of its files and batches, too.
TEST_F(ObjectTableTest, RowsCountInTheRoomOfATenant) {
  auto store = StateStore::open(file());
  ASSERT_TRUE(store) << store.error().message;
  StoredFiles files(**store);
  ASSERT_TRUE(files.open((folder_ / "files").string()));
  EXPECT_EQ(*files.room_of("a"), StoredFiles::kMostBytes);
  const auto file = files.upload("a", "name", "0123456789");
  ASSERT_TRUE(file) << file.error().message;
  const auto of_file = 10 + file->dump().size();
  EXPECT_EQ(*files.room_of("a"), StoredFiles::kMostBytes - of_file);
  auto batch = object("a", 1, "failed");
  batch.kind = kBatchKind;
  batch.n_content_bytes = 0;
  batch.body = std::string(100000, ' ');
  ASSERT_TRUE((*store)->objects().put(batch));
  EXPECT_EQ(*files.room_of("a"), StoredFiles::kMostBytes - of_file - 100000);
  EXPECT_EQ(*files.room_of("b"), StoredFiles::kMostBytes);
  // What a batch that runs has written is no file yet, and counts.
  EXPECT_TRUE(files.note_growing("a", "batch", 500));
  EXPECT_TRUE(files.note_growing("a", "batch", 700));
  EXPECT_EQ(*files.room_of("a"), StoredFiles::kMostBytes - of_file - 100700);
  EXPECT_FALSE(files.note_growing("a", "batch", StoredFiles::kMostBytes - of_file - 100000));
  EXPECT_FALSE(files.upload("a", "name", "x"));
  EXPECT_TRUE(files.note_growing("a", "batch", 0));
  EXPECT_EQ(*files.room_of("a"), StoredFiles::kMostBytes - of_file - 100000);
  batch.n_content_bytes = StoredFiles::kMostBytes;  // as so many rows would have
  ASSERT_TRUE((*store)->objects().put(batch));
  EXPECT_EQ(*files.room_of("a"), 0u);
  const auto refused = files.upload("a", "name", "x");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("room for 0 more"), std::string::npos) << refused.error().message;
}

unsigned rights_of(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 0777u : 0u;
}

TEST_F(ObjectTableTest, TheStateIsItsOwnersAloneWhateverTheUmask) {
  for (const ::mode_t mask : {0000, 0022, 0077, 0377}) {
    const auto before = ::umask(mask);
    const auto path = fmt::format("{}.{:o}", file(), mask);
    auto store = StateStore::open(path);
    ::umask(before);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE((*store)->objects().put(object("a", 1)));
    for (const char* ending : {"", "-wal", "-shm"}) EXPECT_EQ(rights_of(path + ending), 0600u) << path << ending;
  }
}

TEST_F(ObjectTableTest, AStateThatOthersCouldReadIsNarrowed) {
  auto first = StateStore::open(file());
  ASSERT_TRUE((*first)->objects().put(object("a", 1)));
  for (const char* ending : {"", "-wal", "-shm"}) ASSERT_EQ(::chmod((file() + ending).c_str(), 0644), 0);
  auto second = StateStore::open(file());
  ASSERT_TRUE(second) << second.error().message;
  for (const char* ending : {"", "-wal", "-shm"}) EXPECT_EQ(rights_of(file() + ending), 0600u) << ending;
}

TEST_F(ObjectTableTest, AStateThatIsWrittenAnewIsItsOwnersAlone) {
  auto store = StateStore::open(file());
  ASSERT_TRUE((*store)->objects().put(object("a", 1)));
  const auto before = ::umask(0);
  std::filesystem::remove(file());
  while (!std::filesystem::exists(file())) std::this_thread::yield();
  std::atomic<bool> is_done{false};
  (*store)->record({"id", "a", "m", "/x", "stop", 0, 1, 0, 1}, [&] { is_done = true; });
  while (!is_done) std::this_thread::yield();
  ::umask(before);
  for (const char* ending : {"", "-wal", "-shm"}) EXPECT_EQ(rights_of(file() + ending), 0600u) << ending;
  EXPECT_EQ((*store)->objects().sum(kFileKind, "a")->n_objects, 1u);
}

}  // namespace
}  // namespace zinc_rt::server
