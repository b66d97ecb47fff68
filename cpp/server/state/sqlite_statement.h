// Statement is a prepared statement of SQLite. Call bind() for the values in order, then step() or run().
// Thread rule: one thread at a time, which holds the lock of the database connection.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace zinc_rt::server {

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
  // Call this after step() returned false. Returns true if there are no more rows, false if step() failed.
  bool is_at_end() const { return last_ == SQLITE_DONE; }
  bool run() {
    if (sqlite3_step(statement_) != SQLITE_DONE) return false;  // sqlite3_errmsg() has the reason until the next call
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

}  // namespace zinc_rt::server
