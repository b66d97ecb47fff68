// The SQLite file of a StateStore. It is opened, upgraded to this program's version, and watched, because it may be
// removed or replaced while in use.
// It has two connections. One writes, under lock(). The other reads, under read(), and neither waits for writers nor
// makes them wait. A file in memory has only the first.
// Thread rule: every member but lock(), read(), remove(), in_transaction() and `path` under lock(), if several threads use
// it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "server/state/sqlite_statement.h"

namespace zinc_rt::server {

class StateFile {
 public:
  ~StateFile();
  // Opens the file and brings its schema up to date. `path` empty: in memory. Errors: kUnavailable, kCorrupt.
  Status open(const std::string& path);
  // The first fault that SQLite's check of all pages finds; empty: none.
  std::string damage() const;
  // Checks that the name still leads to the open file. If the file was removed it is written again, because the open
  // file is still complete. Errors: kUnavailable if another file took the name or writing failed. Takes the lock
  // itself.
  Status look();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  sqlite3* db() const { return db_; }
  const std::string& path() const { return path_; }

  // The reading connection, locked while this lives. It sees everything committed.
  struct Reading {
    std::unique_lock<std::mutex> guard;
    sqlite3* db = nullptr;
  };
  Reading read();
  // The error of a failed read.
  std::unexpected<Error> unreadable(const Reading& reading) const;

  // A transaction: commits what `work` does, or nothing if it returns false. Takes the lock itself.
  template <class Work>
  Status in_transaction(const Work& work) {
    const auto guard = lock();
    if (execute("BEGIN IMMEDIATE") && work() && execute("COMMIT")) return {};
    const std::string what = sqlite3_errmsg(db_);
    execute("ROLLBACK");
    return fail(StatusCode::kUnavailable, "[state] the change was not stored: {}", what);
  }

  // Runs a DELETE with these values. Returns false if there was no such row.
  Result<bool> remove(const char* sql, std::initializer_list<std::string> values);

 private:
  using FileId = std::pair<dev_t, ino_t>;
  static std::optional<FileId> file_at(const std::string& path);
  Status open_file();
  bool execute(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }
  Status open_reader();
  void close();
  bool bring_up_to_date();

  std::string path_;
  std::optional<FileId> file_;                 // which file is open
  sqlite3 *db_ = nullptr, *reader_ = nullptr;  // reader_: null in memory
  std::mutex mutex_, reader_mutex_;            // taken in this order
};

}  // namespace zinc_rt::server
