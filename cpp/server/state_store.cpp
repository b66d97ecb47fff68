#include "server/state_store.h"

#include <sqlite3.h>

#include <atomic>
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
    sqlite3_busy_timeout(db_, 5000);
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
    const std::lock_guard lock(db_mutex_);
    bool good = execute("BEGIN IMMEDIATE");
    good = good &&
           Statement(db_, "INSERT OR REPLACE INTO tenants VALUES (?, ?)").bind(tenant.name).bind(tenant.settings).run();
    good = good && Statement(db_, "DELETE FROM keys WHERE tenant = ?").bind(tenant.name).run();
    for (const auto& hash : tenant.key_hashes)
      good = good && Statement(db_, "INSERT OR REPLACE INTO keys VALUES (?, ?)").bind(hash).bind(tenant.name).run();
    return end(good);
  }

  Status remove_tenant(const std::string& name) override {
    const std::lock_guard lock(db_mutex_);
    bool good = execute("BEGIN IMMEDIATE");
    good = good && Statement(db_, "DELETE FROM tenants WHERE name = ?").bind(name).run();
    good = good && Statement(db_, "DELETE FROM keys WHERE tenant = ?").bind(name).run();
    return end(good);
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

  // Ends the transaction; with db_mutex_.
  Status end(bool good) {
    if (good && execute("COMMIT")) return {};
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

  void write_all() {
    std::unique_lock lock(queue_mutex_);
    for (;;) {
      there_.wait(lock, [&] { return is_stopped_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Waiting rows;
      rows.swap(queue_);
      lock.unlock();
      is_good_ = write(rows);
      for (auto& [row, committed] : rows) committed();
      rows.clear();
      lock.lock();
    }
  }

  bool write(const Waiting& rows) {
    const std::lock_guard lock(db_mutex_);
    if (utc_day(std::time(nullptr)) != forgotten_day_) forget_old();
    bool good = execute("BEGIN IMMEDIATE");
    {
      Statement request(db_, "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
      Statement total(
          db_,
          "INSERT INTO totals VALUES (?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests "
          "+ 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + "
          "excluded.cached_tokens, completion_tokens = completion_tokens + excluded.completion_tokens");
      for (const auto& [row, committed] : rows) {
        const auto time = static_cast<std::uint64_t>(row.time_s);
        request.bind(row.id).bind(time).bind(row.tenant).bind(row.model).bind(row.endpoint).bind(row.finish);
        good = good && request.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run();
        if (!good) break;
        total.bind(row.tenant).bind(row.model).bind(utc_day(row.time_s)).bind(row.finish);
        good = total.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run();
        if (!good) break;
      }
    }
    const auto status = end(good);
    if (!status) log().error("{} requests are missing in the ledger: {}", rows.size(), status.error().message);
    return status.has_value();
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
