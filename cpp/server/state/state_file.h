// StateFile is the SQLite file of a StateStore. open() upgrades an older file to this program's version. look() detects
// that the file was removed or replaced while in use.
// It has two connections to the database: one for writing, which lock() guards, and one for reading, which read()
// guards. Reads neither wait for writers nor delay them. A database in memory has only the connection for writing.
// Thread rule: lock(), read(), remove(), in_transaction() and `path` from any thread. If several threads use the
// object, all other members need lock().
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
  // Opens the file and brings its schema up to date. If `path` is empty, the database is in memory. Errors:
  // kUnavailable, kCorrupt.
  Status open(const std::string& path);
  // Runs SQLite's check of all pages. Returns the first fault, or an empty text if the file has no fault.
  std::string damage() const;
  // Checks that the path still leads to the open file. If the file was removed, writes it again, because the open file
  // is still complete. Errors: kUnavailable if another file has the name or writing failed. The caller must not hold
  // lock().
  Status look();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  sqlite3* db() const { return db_; }
  const std::string& path() const { return path_; }

  // The reading connection, locked while this object exists. It sees all committed data.
  struct Reading {
    std::unique_lock<std::mutex> guard;
    sqlite3* db = nullptr;
  };
  Reading read();
  // Returns the error of a failed read.
  std::unexpected<Error> unreadable(const Reading& reading) const;

  // Runs `work` in a transaction. Commits it if `work` returns true, else rolls it back. The caller must not hold
  // lock().
  template <class Work>
  Status in_transaction(const Work& work) {
    const auto guard = lock();
    if (execute("BEGIN IMMEDIATE") && work() && execute("COMMIT")) return {};
    const std::string what = sqlite3_errmsg(db_);
    execute("ROLLBACK");
    return fail(StatusCode::kUnavailable, "[state] the change was not stored: {}", what);
  }

  // Runs a DELETE with these values. Returns false if no row was deleted.
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
  std::optional<FileId> file_;                 // device and inode of the open file
  sqlite3 *db_ = nullptr, *reader_ = nullptr;  // reader_: null in memory
  std::mutex mutex_, reader_mutex_;            // taken in this order
};

}  // namespace zinc_rt::server
