#include "server/state/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/log.h"

namespace zinc_rt::server {
namespace {

// The version of the schema. In version 1, keys had no made_s. In version 2, responses and objects had no size, and
// objects had no label.
constexpr int kVersion = 3;
constexpr int kBusyMs = 1000;  // how long to wait while another process has locked the file
constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, time_s INTEGER NOT NULL, tenant TEXT NOT NULL, model TEXT NOT NULL,
  endpoint TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_time ON requests (time_s);
CREATE TABLE IF NOT EXISTS totals (tenant TEXT NOT NULL, model TEXT NOT NULL, day TEXT NOT NULL, finish TEXT NOT NULL,
  requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, model, day, finish)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, time_s INTEGER NOT NULL,
  size INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (kind TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, time_s INTEGER NOT NULL,
  label TEXT NOT NULL DEFAULT '', size INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, PRIMARY KEY (kind, tenant, id))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenants (name TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, made_s INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
)";

// With these indexes, sums and orders do not read the texts of the rows.
constexpr const char* kIndexes = R"(
DROP INDEX IF EXISTS responses_by_tenant;
CREATE INDEX IF NOT EXISTS responses_by_size ON responses (tenant, time_s, id, size);
CREATE INDEX IF NOT EXISTS responses_by_time ON responses (time_s);
CREATE INDEX IF NOT EXISTS objects_by_tenant ON objects (tenant, kind, time_s, id, label, size);
CREATE INDEX IF NOT EXISTS objects_by_label ON objects (kind, label);
CREATE INDEX IF NOT EXISTS objects_by_time ON objects (kind, time_s);
)";
// A column that files of an earlier version lack, and the value that their rows get.
struct AddedColumn {
  const char *table, *column, *type, *value;
};
constexpr AddedColumn kAdded[] = {
    {"keys", "made_s", "INTEGER NOT NULL DEFAULT 0", "0"},
    {"responses", "size", "INTEGER NOT NULL DEFAULT 0", "LENGTH(CAST(body AS BLOB))"},
    {"objects", "label", "TEXT NOT NULL DEFAULT ''",
     "CASE WHEN json_valid(body) THEN COALESCE(json_extract(body, IIF(kind = 'file', '$.purpose', '$.status')), '') "
     "ELSE "
     "'' END"},
    {"objects", "size", "INTEGER NOT NULL DEFAULT 0",
     "LENGTH(CAST(body AS BLOB)) + CASE WHEN json_valid(body) THEN COALESCE(json_extract(body, '$.bytes'), 0) ELSE 0 "
     "END"},
};
// SQLite checks the following tables when the file is opened, because the ledger and the tenants need them. The tables
// of responses and objects may hold gigabytes of text and are not checked.
constexpr const char* kCheckedTables[] = {"requests", "totals", "tenants", "keys"};

// Creates the file so that only its owner can access it, because it holds users' texts; or restricts the access to an
// existing file. If the file cannot be created, SQLite's open reports the reason.
void make_private(const std::string& path, bool is_created) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (is_created ? O_CREAT : 0), 0600);
  if (fd < 0) return;
  struct stat found{};
  if (::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & 0777) != 0600 && ::fchmod(fd, 0600) != 0)
    log().error("[state] {} holds texts, and others may read it (mode {:o}): {}", path, found.st_mode & 0777,
                std::strerror(errno));
  ::close(fd);
}

bool is_damage(sqlite3* db) {
  const int code = sqlite3_errcode(db);
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

}  // namespace

StateFile::~StateFile() {
  close();
}

void StateFile::close() {
  sqlite3_close_v2(std::exchange(reader_, nullptr));
  sqlite3_close_v2(std::exchange(db_, nullptr));
}

Status StateFile::open(const std::string& path) {
  path_ = path;
  return open_file();
}

Status StateFile::open_file() {
  const auto unusable = [&](StatusCode code) {
    return fail(code, "[state] {}: {}", path_.empty() ? "in memory" : path_,
                db_ == nullptr ? "no memory" : sqlite3_errmsg(db_));
  };
  if (!path_.empty()) {
    make_private(path_, true);  // SQLite gives its log files the same access as this file
    for (const char* ending : {"-wal", "-shm"}) make_private(path_ + ending, false);
  }
  if (sqlite3_open_v2(path_.empty() ? ":memory:" : path_.c_str(), &db_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK)
    return unusable(StatusCode::kUnavailable);
  sqlite3_busy_timeout(db_, kBusyMs);
  int version = 0;
  {
    Statement statement(db_, "PRAGMA user_version");
    if (!statement.step()) return unusable(StatusCode::kCorrupt);
    version = static_cast<int>(statement.number(0));
  }
  if (version > kVersion)
    return fail(StatusCode::kCorrupt, "[state] {}: version {}, this program knows {}", path_, version, kVersion);
  if (!execute("PRAGMA journal_mode = WAL") || !execute("PRAGMA synchronous = NORMAL") || !bring_up_to_date())
    return unusable(is_damage(db_) ? StatusCode::kCorrupt : StatusCode::kUnavailable);
  file_ = file_at(path_);
  return path_.empty() ? Status() : open_reader();
}

Status StateFile::open_reader() {
  if (sqlite3_open_v2(path_.c_str(), &reader_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK ||
      sqlite3_exec(reader_, "PRAGMA query_only = 1", nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(StatusCode::kUnavailable, "[state] {}: {}", path_,
                reader_ == nullptr ? "no memory" : sqlite3_errmsg(reader_));
  sqlite3_busy_timeout(reader_, kBusyMs);
  return {};
}

StateFile::Reading StateFile::read() {
  std::unique_lock guard(path_.empty() ? mutex_ : reader_mutex_);
  return {std::move(guard), path_.empty() ? db_ : reader_};
}

std::string StateFile::damage() const {
  for (const char* table : kCheckedTables) {
    Statement check(db_, fmt::format("PRAGMA quick_check({})", table).c_str());
    if (!check.step()) return sqlite3_errmsg(db_);
    if (const auto found = check.text(0); found != "ok") return found.substr(0, 200);
  }
  return {};
}

std::unexpected<Error> StateFile::unreadable(const Reading& reading) const {
  return fail(StatusCode::kCorrupt, "[state] {}: {}", path_, sqlite3_errmsg(reading.db));
}

Result<bool> StateFile::remove(const char* sql, std::initializer_list<std::string> values) {
  bool was_there = false;
  ZRT_CHECK_OK(in_transaction([&] {
    Statement statement(db_, sql);
    for (const auto& value : values) statement.bind(value);
    if (!statement.run()) return false;
    was_there = sqlite3_changes(db_) > 0;
    return true;
  }));
  return was_there;
}

// Returns device and inode of the file at the path, or nullopt if no file is there.
std::optional<StateFile::FileId> StateFile::file_at(const std::string& path) {
  struct stat found{};
  if (path.empty() || ::stat(path.c_str(), &found) != 0) return std::nullopt;
  return std::pair{found.st_dev, found.st_ino};
}

Status StateFile::look() {
  const auto now = file_at(path_);
  if (now == file_) return {};
  if (now)
    return fail(StatusCode::kUnavailable,
                "[state] {} was replaced while the server ran; bring the former file back, or start the server anew",
                path_);
  const auto guard = lock();
  const std::lock_guard reader_guard(reader_mutex_);
  const std::string part = path_ + ".part";
  std::error_code failure;
  std::filesystem::remove(part, failure);
  make_private(part, true);
  if (!Statement(db_, "VACUUM INTO ?").bind(part).run())
    return fail(StatusCode::kUnavailable, "[state] {} was removed while the server ran, and cannot be written anew: {}",
                path_, sqlite3_errmsg(db_));
  // The log files beside the old file do not belong to the new one, so they are removed.
  close();
  for (const char* ending : {"-wal", "-shm"}) std::filesystem::remove(path_ + ending, failure);
  std::filesystem::rename(part, path_, failure);
  ZRT_CHECK_OK(open_file());
  log().error("[state] {} was removed while the server ran; all that it held was written anew", path_);
  return {};
}

// Upgrades the schema. All changes are made in one transaction, so that after a kill the file still has the earlier
// version. If this returns false, the connection has the error and must be closed.
bool StateFile::bring_up_to_date() {
  const auto add_columns = [&] {
    return std::ranges::all_of(kAdded, [&](const AddedColumn& added) {
      const auto look =
          fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", added.table, added.column);
      if (Statement(db_, look.c_str()).step()) return true;
      return execute(fmt::format("ALTER TABLE {0} ADD COLUMN {1} {2}; UPDATE {0} SET {1} = {3}", added.table,
                                 added.column, added.type, added.value)
                         .c_str());
    });
  };
  if (execute("BEGIN IMMEDIATE") && execute(kSchema) && add_columns() && execute(kIndexes) &&
      execute(fmt::format("PRAGMA user_version = {}", kVersion).c_str()) && execute("COMMIT"))
    return true;
  return false;
}

}  // namespace zinc_rt::server
