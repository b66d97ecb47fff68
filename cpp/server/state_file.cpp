#include "server/state_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/log.h"

namespace zinc_rt::server {
namespace {

constexpr int kVersion = 2;    // in version 1 keys had no made_s
constexpr int kBusyMs = 1000;  // how long another process may hold the file
constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, time_s INTEGER NOT NULL, tenant TEXT NOT NULL, model TEXT NOT NULL,
  endpoint TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_time ON requests (time_s);
CREATE TABLE IF NOT EXISTS totals (tenant TEXT NOT NULL, model TEXT NOT NULL, day TEXT NOT NULL, finish TEXT NOT NULL,
  requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, model, day, finish)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, time_s INTEGER NOT NULL, body TEXT NOT NULL)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS responses_by_tenant ON responses (tenant, time_s);
CREATE TABLE IF NOT EXISTS objects (kind TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, time_s INTEGER NOT NULL,
  body TEXT NOT NULL, PRIMARY KEY (kind, tenant, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenants (name TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, made_s INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
)";

bool is_damage(sqlite3* db) {
  const int code = sqlite3_errcode(db);
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

}  // namespace

StateFile::~StateFile() {
  sqlite3_close_v2(db_);
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
  if (!execute("PRAGMA journal_mode = WAL") || !execute("PRAGMA synchronous = NORMAL") || !execute(kSchema) ||
      !add_times_of_keys() || !execute(fmt::format("PRAGMA user_version = {}", kVersion).c_str()))
    return unusable(is_damage(db_) ? StatusCode::kCorrupt : StatusCode::kUnavailable);
  file_ = file_at(path_);
  return {};
}

std::string StateFile::damage() const {
  Statement check(db_, "PRAGMA quick_check(1)");
  if (!check.step()) return sqlite3_errmsg(db_);
  const auto found = check.text(0);
  return found == "ok" ? std::string() : found.substr(0, 200);
}

std::unexpected<Error> StateFile::unreadable() const {
  return fail(StatusCode::kCorrupt, "[state] {}: {}", path_, sqlite3_errmsg(db_));
}

// Which file the name leads to now; nothing: there is none.
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
  const std::string part = path_ + ".part";
  std::error_code failure;
  std::filesystem::remove(part, failure);
  if (!Statement(db_, "VACUUM INTO ?").bind(part).run())
    return fail(StatusCode::kUnavailable, "[state] {} was removed while the server ran, and cannot be written anew: {}",
                path_, sqlite3_errmsg(db_));
  // The log files beside the former file do not belong to the new one.
  sqlite3_close_v2(std::exchange(db_, nullptr));
  for (const char* ending : {"-wal", "-shm"}) std::filesystem::remove(path_ + ending, failure);
  std::filesystem::rename(part, path_, failure);
  ZRT_CHECK_OK(open_file());
  log().error("[state] {} was removed while the server ran; all that it held was written anew", path_);
  return {};
}

// Brings a file of version 1 to version 2.
bool StateFile::add_times_of_keys() {
  {
    Statement columns(db_, "SELECT 1 FROM pragma_table_info('keys') WHERE name = 'made_s'");
    if (columns.step()) return true;
  }
  return execute("ALTER TABLE keys ADD COLUMN made_s INTEGER NOT NULL DEFAULT 0");
}

}  // namespace zinc_rt::server
