#include "server/state_store.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/thread_name.h"

namespace zinc_rt::server {
namespace {

constexpr int kVersion = 2;          // 1: keys without made_s
constexpr int kDaysOfRequests = 31;  // single requests are kept so long, their sums for ever
constexpr int kBusyMs = 1000;        // that another process may hold the file
constexpr std::chrono::seconds kRetry{1};
constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, time_s INTEGER NOT NULL, tenant TEXT NOT NULL, model TEXT NOT NULL,
  endpoint TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_time ON requests (time_s);
CREATE TABLE IF NOT EXISTS totals (tenant TEXT NOT NULL, model TEXT NOT NULL, day TEXT NOT NULL, finish TEXT NOT NULL,
  requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, model, day, finish)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenants (name TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, made_s INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
)";

std::string utc_day(std::int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

// A prepared statement; bind() in order, then step() or run().
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) { sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++n_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::uint64_t number) {
    sqlite3_bind_int64(statement_, ++n_, static_cast<sqlite3_int64>(number));
    return *this;
  }
  bool step() {
    last_ = sqlite3_step(statement_);
    return last_ == SQLITE_ROW;
  }
  // After step() said false: whether it was the end, and not a failure.
  bool is_at_end() const { return last_ == SQLITE_DONE; }
  bool run() {
    if (sqlite3_step(statement_) != SQLITE_DONE) return false;  // the database says why until the next call
    sqlite3_reset(statement_);
    n_ = 0;
    return true;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr ? ""
                            : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::uint64_t number(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int n_ = 0, last_ = SQLITE_MISUSE;
};

// For the log: all that a row has.
std::string to_text(const UsageRow& row) {
  return fmt::format(
      R"({{"id":{},"time_s":{},"tenant":{},"model":{},"endpoint":{},"finish":{},"prompt_tokens":{},"cached_tokens":{},"completion_tokens":{}}})",
      json_string(row.id), row.time_s, json_string(row.tenant), json_string(row.model), json_string(row.endpoint),
      json_string(row.finish), row.prompt_tokens, row.cached_tokens, row.completion_tokens);
}

class Store final : public StateStore {
 public:
  ~Store() override {
    if (const auto closed = close(); !closed) log().error("{}", closed.error().message);
    sqlite3_close_v2(db_);
  }

  Status start(const std::string& path) {
    std::error_code ignored;
    path_ = path;
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty())
      std::filesystem::create_directories(parent, ignored);
    if (const auto opened = open_file(); !opened)
      return fail(opened.error().code, "{}; another --state file, or --state none, may do", opened.error().message);
    if (const auto damage = damage_of(db_); !damage.empty())
      return fail(StatusCode::kCorrupt,
                  "[state] {}: the file is damaged ({}). It has the ledger and the tenants made at run time: bring a "
                  "backup back, or move it away to begin with an empty one",
                  path, damage);
    forget_old();
    writer_ = std::thread([this] {
      name_thread("zrt-ledger");
      write_all();
    });
    return {};
  }

  Status close() override {
    {
      const std::lock_guard lock(queue_mutex_);
      is_stopped_ = true;
    }
    there_.notify_all();
    if (writer_.joinable()) writer_.join();
    if (n_missing_ == 0) return {};
    return fail(StatusCode::kUnavailable, "[state] {} requests are missing in the ledger {}: {}; they are in the log",
                std::exchange(n_missing_, 0), path_, trouble());
  }

  void record(UsageRow row, std::function<void()> committed) override {
    {
      const std::lock_guard lock(queue_mutex_);
      queue_.emplace_back(std::move(row), std::move(committed));
    }
    there_.notify_one();
  }

  std::string trouble() const override {
    const std::lock_guard lock(trouble_mutex_);
    return trouble_;
  }

  Result<std::vector<UsageTotal>> totals(const std::string& tenant) override {
    const std::lock_guard lock(db_mutex_);
    Statement statement(
        db_,
        "SELECT model, day, finish, requests, prompt_tokens, cached_tokens, completion_tokens FROM totals "
        "WHERE tenant = ? ORDER BY day, model, finish");
    statement.bind(tenant);
    std::vector<UsageTotal> out;
    while (statement.step())
      out.push_back({statement.text(0), statement.text(1), statement.text(2), statement.number(3), statement.number(4),
                     statement.number(5), statement.number(6)});
    if (!statement.is_at_end()) return unreadable();
    return out;
  }

  Status put_tenant(const StoredTenant& tenant) override {
    return in_transaction([&] {
      if (!Statement(db_, "INSERT OR REPLACE INTO tenants VALUES (?, ?)").bind(tenant.name).bind(tenant.settings).run())
        return false;
      if (!Statement(db_, "DELETE FROM keys WHERE tenant = ?").bind(tenant.name).run()) return false;
      return std::ranges::all_of(tenant.keys, [&](const StoredKey& key) {
        Statement statement(db_, "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)");
        return statement.bind(key.hash).bind(tenant.name).bind(static_cast<std::uint64_t>(key.made_s)).run();
      });
    });
  }

  Status remove_tenant(const std::string& name) override {
    return in_transaction([&] {
      return Statement(db_, "DELETE FROM tenants WHERE name = ?").bind(name).run() &&
             Statement(db_, "DELETE FROM keys WHERE tenant = ?").bind(name).run();
    });
  }

  Result<std::vector<StoredTenant>> tenants() override {
    const std::lock_guard lock(db_mutex_);
    std::vector<StoredTenant> out;
    Statement statement(db_, "SELECT name, settings FROM tenants ORDER BY name");
    while (statement.step()) out.push_back({statement.text(0), statement.text(1), {}});
    if (!statement.is_at_end()) return unreadable();
    for (auto& tenant : out) {
      Statement keys(db_, "SELECT hash, made_s FROM keys WHERE tenant = ? ORDER BY made_s, hash");
      keys.bind(tenant.name);
      while (keys.step()) tenant.keys.push_back({keys.text(0), static_cast<std::int64_t>(keys.number(1))});
      if (!keys.is_at_end()) return unreadable();
    }
    return out;
  }

 private:
  // Opens path_, which has the schema then.
  Status open_file() {
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

  static bool is_damage(sqlite3* db) {
    const int code = sqlite3_errcode(db);
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  }

  // What SQLite's check of all pages finds first; empty: nothing.
  static std::string damage_of(sqlite3* db) {
    Statement check(db, "PRAGMA quick_check(1)");
    if (!check.step()) return sqlite3_errmsg(db);
    const auto found = check.text(0);
    return found == "ok" ? std::string() : found.substr(0, 200);
  }

  std::unexpected<Error> unreadable() {
    return fail(StatusCode::kCorrupt, "[state] {}: {}", path_, sqlite3_errmsg(db_));
  }

  // Which file has a name now; nothing: none.
  static std::optional<std::pair<dev_t, ino_t>> file_at(const std::string& path) {
    struct stat found{};
    if (path.empty() || ::stat(path.c_str(), &found) != 0) return std::nullopt;
    return std::pair{found.st_dev, found.st_ino};
  }

  // Whether the name still leads to the file that is open. One that was removed is whole for who has it open, and is
  // written out again.
  Status look_at_file() {
    const auto now = file_at(path_);
    if (now == file_) return {};
    if (now)
      return fail(StatusCode::kUnavailable,
                  "[state] {} was replaced while the server ran; bring the former file back, or start the server anew",
                  path_);
    const std::lock_guard lock(db_mutex_);
    const std::string part = path_ + ".part";
    std::error_code failure;
    std::filesystem::remove(part, failure);
    if (!Statement(db_, "VACUUM INTO ?").bind(part).run())
      return fail(StatusCode::kUnavailable,
                  "[state] {} was removed while the server ran, and cannot be written anew: {}", path_,
                  sqlite3_errmsg(db_));
    // The log beside the former file is not of the new one.
    sqlite3_close_v2(std::exchange(db_, nullptr));
    for (const char* ending : {"-wal", "-shm"}) std::filesystem::remove(path_ + ending, failure);
    std::filesystem::rename(part, path_, failure);
    ZRT_CHECK_OK(open_file());
    log().error("[state] {} was removed while the server ran; all that it held was written anew", path_);
    return {};
  }

  bool execute(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

  // All that `work` does, or nothing where it says false.
  template <class Work>
  Status in_transaction(const Work& work) {
    const std::lock_guard lock(db_mutex_);
    if (execute("BEGIN IMMEDIATE") && work() && execute("COMMIT")) return {};
    const std::string what = sqlite3_errmsg(db_);
    execute("ROLLBACK");
    return fail(StatusCode::kUnavailable, "[state] the change was not stored: {}", what);
  }

  // To a file of version 1.
  bool add_times_of_keys() {
    {
      Statement columns(db_, "SELECT 1 FROM pragma_table_info('keys') WHERE name = 'made_s'");
      if (columns.step()) return true;
    }
    return execute("ALTER TABLE keys ADD COLUMN made_s INTEGER NOT NULL DEFAULT 0");
  }

  void forget_old() {
    const auto before = static_cast<std::int64_t>(std::time(nullptr)) - 86400ll * kDaysOfRequests;
    Statement(db_, "DELETE FROM requests WHERE time_s < ?").bind(static_cast<std::uint64_t>(before)).run();
    forgotten_day_ = utc_day(std::time(nullptr));
  }

  using Waiting = std::vector<std::pair<UsageRow, std::function<void()>>>;

  // Rows that cannot be written stay and are tried again, since a disk that was full or a file that another process
  // held may be free by then; who waits for them hears of it at the first try.
  void write_all() {
    std::vector<UsageRow> rows;
    std::unique_lock lock(queue_mutex_);
    for (;;) {
      const auto has_work = [&] { return is_stopped_ || !queue_.empty(); };
      there_.wait_for(lock, rows.empty() ? kLook : kRetry, has_work);
      const bool is_last = is_stopped_;
      Waiting waiting;
      waiting.swap(queue_);
      lock.unlock();
      for (auto& [row, committed] : waiting) rows.push_back(std::move(row));
      auto status = look_at_file();
      if (status && !rows.empty()) status = write(rows);
      note(status, rows.size());
      if (status) rows.clear();
      for (auto& [row, committed] : waiting) committed();
      lock.lock();
      if (is_last && queue_.empty()) break;
    }
    n_missing_ = rows.size();
    for (const UsageRow& row : rows) log().error("[state] missing in the ledger: {}", to_text(row));
  }

  // Says once when trouble begins, and when it ends.
  void note(const Status& status, std::size_t n_rows) {
    const std::lock_guard lock(trouble_mutex_);
    if (status && !trouble_.empty()) log().info("the ledger can be written again, {} requests were waiting", n_rows);
    if (!status && trouble_.empty()) log().error("{} requests wait for the ledger: {}", n_rows, status.error().message);
    trouble_ = status ? std::string() : status.error().message;
  }

  Status write(const std::vector<UsageRow>& rows) {
    return in_transaction([&] {
      if (utc_day(std::time(nullptr)) != forgotten_day_) forget_old();
      // A row that is there was committed by a try that seemed to fail.
      Statement request(db_, "INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
      Statement total(
          db_,
          "INSERT INTO totals VALUES (?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests "
          "+ 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + "
          "excluded.cached_tokens, completion_tokens = completion_tokens + excluded.completion_tokens");
      return std::ranges::all_of(rows, [&](const UsageRow& row) {
        const auto time = static_cast<std::uint64_t>(row.time_s);
        request.bind(row.id).bind(time).bind(row.tenant).bind(row.model).bind(row.endpoint).bind(row.finish);
        if (!request.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run()) return false;
        if (sqlite3_changes(db_) == 0) return true;
        total.bind(row.tenant).bind(row.model).bind(utc_day(row.time_s)).bind(row.finish);
        return total.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run();
      });
    });
  }

  std::string path_;                             // empty: in memory
  std::optional<std::pair<dev_t, ino_t>> file_;  // that is open
  sqlite3* db_ = nullptr;
  std::mutex db_mutex_;
  std::string forgotten_day_;
  std::mutex queue_mutex_;
  std::condition_variable there_;
  Waiting queue_;
  bool is_stopped_ = false;
  mutable std::mutex trouble_mutex_;
  std::string trouble_;
  std::size_t n_missing_ = 0;  // once the writer has ended
  std::thread writer_;
};

}  // namespace

Result<std::unique_ptr<StateStore>> StateStore::open(const std::string& path) {
  auto store = std::make_unique<Store>();
  ZRT_CHECK_OK(store->start(path));
  return store;
}

}  // namespace zinc_rt::server
