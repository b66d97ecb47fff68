#include "server/state_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_name.h"

namespace zinc_rt::server {
namespace {

constexpr int kVersion = 1;
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
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL) WITHOUT ROWID;
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
  bool step() { return sqlite3_step(statement_) == SQLITE_ROW; }
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
  int n_ = 0;
};

class Store final : public StateStore {
 public:
  ~Store() override {
    {
      const std::lock_guard lock(queue_mutex_);
      is_stopped_ = true;
    }
    there_.notify_all();
    if (writer_.joinable()) writer_.join();
    sqlite3_close_v2(db_);
  }

  Status start(const std::string& path) {
    std::error_code ignored;
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty())
      std::filesystem::create_directories(parent, ignored);
    const auto unusable = [&](StatusCode code) {
      return fail(code, "[state] {}: {}; another --state file, or --state none, may do",
                  path.empty() ? "in memory" : path, db_ == nullptr ? "no memory" : sqlite3_errmsg(db_));
    };
    if (sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &db_,
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
      return fail(StatusCode::kCorrupt, "[state] {}: version {}, this program knows {}", path, version, kVersion);
    if (!execute("PRAGMA journal_mode = WAL") || !execute("PRAGMA synchronous = NORMAL") || !execute(kSchema) ||
        !execute(fmt::format("PRAGMA user_version = {}", kVersion).c_str()))
      return unusable(StatusCode::kUnavailable);
    forget_old();
    writer_ = std::thread([this] {
      name_thread("zrt-ledger");
      write_all();
    });
    return {};
  }

  void record(UsageRow row, std::function<void()> committed) override {
    {
      const std::lock_guard lock(queue_mutex_);
      queue_.emplace_back(std::move(row), std::move(committed));
    }
    there_.notify_one();
  }

  bool is_good() const override { return is_good_; }

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
    return out;
  }

  Status put_tenant(const StoredTenant& tenant) override {
    return in_transaction([&] {
      if (!Statement(db_, "INSERT OR REPLACE INTO tenants VALUES (?, ?)").bind(tenant.name).bind(tenant.settings).run())
        return false;
      if (!Statement(db_, "DELETE FROM keys WHERE tenant = ?").bind(tenant.name).run()) return false;
      return std::ranges::all_of(tenant.key_hashes, [&](const std::string& hash) {
        return Statement(db_, "INSERT OR REPLACE INTO keys VALUES (?, ?)").bind(hash).bind(tenant.name).run();
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
    for (auto& tenant : out) {
      Statement keys(db_, "SELECT hash FROM keys WHERE tenant = ?");
      keys.bind(tenant.name);
      while (keys.step()) tenant.key_hashes.push_back(keys.text(0));
    }
    return out;
  }

 private:
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
      if (rows.empty())
        there_.wait(lock, has_work);
      else
        there_.wait_for(lock, kRetry, has_work);
      if (queue_.empty() && rows.empty()) return;
      const bool is_last = is_stopped_;
      Waiting waiting;
      waiting.swap(queue_);
      lock.unlock();
      for (auto& [row, committed] : waiting) rows.push_back(std::move(row));
      const auto status = write(rows);
      if (status && !is_good_) log().info("the ledger can be written again, {} requests were waiting", rows.size());
      if (!status && (is_good_ || is_last))
        log().error("{} requests {} the ledger: {}", rows.size(), is_last ? "are missing in" : "wait for",
                    status.error().message);
      is_good_ = status.has_value();
      if (is_good_) rows.clear();
      for (auto& [row, committed] : waiting) committed();
      lock.lock();
      if (is_last && queue_.empty()) return;
    }
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

  sqlite3* db_ = nullptr;
  std::mutex db_mutex_;
  std::string forgotten_day_;
  std::mutex queue_mutex_;
  std::condition_variable there_;
  Waiting queue_;
  bool is_stopped_ = false;
  std::atomic<bool> is_good_{true};
  std::thread writer_;
};

}  // namespace

Result<std::unique_ptr<StateStore>> StateStore::open(const std::string& path) {
  auto store = std::make_unique<Store>();
  ZRT_CHECK_OK(store->start(path));
  return store;
}

}  // namespace zinc_rt::server
