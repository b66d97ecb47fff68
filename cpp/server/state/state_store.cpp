#include "server/state/state_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "server/state/state_file.h"

namespace zinc_rt::server {
namespace {

constexpr int kDaysOfRequests = 31;  // days that rows of single requests are kept; their sums are kept for ever
constexpr std::chrono::seconds kRetry{1};

std::string utc_day(std::int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

// Returns all fields of a row as text, for the log.
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
  }

  Status start(const std::string& path) {
    std::error_code ignored;
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty())
      std::filesystem::create_directories(parent, ignored);
    if (const auto opened = file_.open(path); !opened)
      return fail(opened.error().code, "{}; another --state file, or --state none, may do", opened.error().message);
    if (const auto damage = file_.damage(); !damage.empty())
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
                std::exchange(n_missing_, 0), file_.path(), trouble());
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
    const auto reading = file_.read();
    Statement statement(
        reading.db,
        "SELECT model, day, finish, requests, prompt_tokens, cached_tokens, completion_tokens FROM totals "
        "WHERE tenant = ? ORDER BY day, model, finish");
    statement.bind(tenant);
    std::vector<UsageTotal> out;
    while (statement.step())
      out.push_back({statement.text(0), statement.text(1), statement.text(2), statement.number(3), statement.number(4),
                     statement.number(5), statement.number(6)});
    if (!statement.is_at_end()) return file_.unreadable(reading);
    return out;
  }

  Status put_tenant(const StoredTenant& tenant) override {
    return file_.in_transaction([&] {
      if (!Statement(file_.db(), "INSERT OR REPLACE INTO tenants VALUES (?, ?)")
               .bind(tenant.name)
               .bind(tenant.settings)
               .run())
        return false;
      if (!Statement(file_.db(), "DELETE FROM keys WHERE tenant = ?").bind(tenant.name).run()) return false;
      return std::ranges::all_of(tenant.keys, [&](const StoredKey& key) {
        Statement statement(file_.db(), "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)");
        return statement.bind(key.hash).bind(tenant.name).bind(static_cast<std::uint64_t>(key.made_s)).run();
      });
    });
  }

  Status remove_tenant(const std::string& name) override {
    return file_.in_transaction([&] {
      return Statement(file_.db(), "DELETE FROM tenants WHERE name = ?").bind(name).run() &&
             Statement(file_.db(), "DELETE FROM responses WHERE tenant = ?").bind(name).run() &&
             Statement(file_.db(), "DELETE FROM objects WHERE tenant = ?").bind(name).run() &&
             Statement(file_.db(), "DELETE FROM keys WHERE tenant = ?").bind(name).run();
    });
  }

  Result<std::vector<StoredTenant>> tenants() override {
    const auto reading = file_.read();
    std::vector<StoredTenant> out;
    Statement statement(reading.db, "SELECT name, settings FROM tenants ORDER BY name");
    while (statement.step()) out.push_back({statement.text(0), statement.text(1), {}});
    if (!statement.is_at_end()) return file_.unreadable(reading);
    for (auto& tenant : out) {
      Statement keys(reading.db, "SELECT hash, made_s FROM keys WHERE tenant = ? ORDER BY made_s, hash");
      keys.bind(tenant.name);
      while (keys.step()) tenant.keys.push_back({keys.text(0), static_cast<std::int64_t>(keys.number(1))});
      if (!keys.is_at_end()) return file_.unreadable(reading);
    }
    return out;
  }

  Status put_response(const StoredResponse& response) override {
    if (response.body.size() > kMostResponses)
      return fail(StatusCode::kExhausted, "[state] the response takes {} bytes, {} allowed", response.body.size(),
                  kMostResponses);
    return file_.in_transaction([&] {
      const auto time = static_cast<std::uint64_t>(response.time_s);
      if (!Statement(file_.db(), "DELETE FROM responses WHERE time_s < ?").bind(time - kResponsesKept_s).run() ||
          !Statement(file_.db(),
                     "INSERT OR REPLACE INTO responses (id, tenant, time_s, size, body) VALUES (?, ?, ?, ?, ?)")
               .bind(response.id)
               .bind(response.tenant)
               .bind(time)
               .bind(std::uint64_t{response.body.size()})
               .bind(response.body)
               .run())
        return false;
      // Deletes the tenant's oldest answers until the rest is within kMostResponses. The index responses_by_size covers
      // the query.
      return Statement(file_.db(),
                       "DELETE FROM responses WHERE id IN (SELECT id FROM (SELECT id, SUM(size) OVER (ORDER BY time_s "
                       "DESC, id DESC) AS total FROM responses WHERE tenant = ?) WHERE total > ?)")
          .bind(response.tenant)
          .bind(std::uint64_t{kMostResponses})
          .run();
    });
  }

  Result<std::optional<std::uint64_t>> response_bytes(const std::string& tenant, const std::string& id) override {
    return of_response<std::uint64_t>("size", tenant, id,
                                      [](const Statement& statement) { return statement.number(0); });
  }

  Result<std::optional<std::string>> response(const std::string& tenant, const std::string& id) override {
    return of_response<std::string>("body", tenant, id, [](const Statement& statement) { return statement.text(0); });
  }

  Result<bool> remove_response(const std::string& tenant, const std::string& id) override {
    return file_.remove("DELETE FROM responses WHERE id = ? AND tenant = ?", {id, tenant});
  }

  ObjectTable& objects() override { return objects_; }

 private:
  template <class T, class Read>
  Result<std::optional<T>> of_response(const char* column, const std::string& tenant, const std::string& id,
                                       const Read& read) {
    const auto reading = file_.read();
    const auto sql = fmt::format("SELECT {} FROM responses WHERE id = ? AND tenant = ? AND time_s >= ?", column);
    Statement statement(reading.db, sql.c_str());
    statement.bind(id).bind(tenant).bind(static_cast<std::uint64_t>(std::time(nullptr) - kResponsesKept_s));
    if (statement.step()) return read(statement);
    if (!statement.is_at_end()) return file_.unreadable(reading);
    return std::nullopt;
  }

  void forget_old() {
    const auto before = static_cast<std::int64_t>(std::time(nullptr)) - 86400ll * kDaysOfRequests;
    Statement(file_.db(), "DELETE FROM requests WHERE time_s < ?").bind(static_cast<std::uint64_t>(before)).run();
    forgotten_day_ = utc_day(std::time(nullptr));
  }

  using Waiting = std::vector<std::pair<UsageRow, std::function<void()>>>;

  // Writes the waiting rows. Rows that cannot be written are kept and tried again, because a full disk may get free
  // space and another process may unlock the file. Their callbacks are called after the first try.
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
      auto status = file_.look();
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

  // Logs once when writing begins to fail, and once when it works again.
  void note(const Status& status, std::size_t n_rows) {
    const std::lock_guard lock(trouble_mutex_);
    if (status && !trouble_.empty()) log().info("the ledger can be written again, {} requests were waiting", n_rows);
    if (!status && trouble_.empty()) log().error("{} requests wait for the ledger: {}", n_rows, status.error().message);
    trouble_ = status ? std::string() : status.error().message;
  }

  Status write(const std::vector<UsageRow>& rows) {
    return file_.in_transaction([&] {
      if (utc_day(std::time(nullptr)) != forgotten_day_) forget_old();
      // If the row exists already, an earlier try that seemed to fail has committed it.
      Statement request(file_.db(), "INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
      Statement total(
          file_.db(),
          "INSERT INTO totals VALUES (?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests "
          "+ 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + "
          "excluded.cached_tokens, completion_tokens = completion_tokens + excluded.completion_tokens");
      return std::ranges::all_of(rows, [&](const UsageRow& row) {
        const auto time = static_cast<std::uint64_t>(row.time_s);
        request.bind(row.id).bind(time).bind(row.tenant).bind(row.model).bind(row.endpoint).bind(row.finish);
        if (!request.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run()) return false;
        if (sqlite3_changes(file_.db()) == 0) return true;
        total.bind(row.tenant).bind(row.model).bind(utc_day(row.time_s)).bind(row.finish);
        return total.bind(row.prompt_tokens).bind(row.cached_tokens).bind(row.completion_tokens).run();
      });
    });
  }

  StateFile file_;
  ObjectTable objects_{file_};
  std::string forgotten_day_;
  std::mutex queue_mutex_;
  std::condition_variable there_;
  Waiting queue_;
  bool is_stopped_ = false;
  mutable std::mutex trouble_mutex_;
  std::string trouble_;
  std::size_t n_missing_ = 0;  // set when the writer thread has ended
  std::thread writer_;
};

}  // namespace

Result<std::unique_ptr<StateStore>> StateStore::open(const std::string& path) {
  auto store = std::make_unique<Store>();
  ZRT_CHECK_OK(store->start(path));
  return store;
}

}  // namespace zinc_rt::server
