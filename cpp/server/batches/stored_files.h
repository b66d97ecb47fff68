// StoredFiles stores the files of tenants: uploads for batches, and the output of batches. The contents are in a folder
// beside the state file, the metadata in the state file.
// Thread rule: call open() first. Then any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/json_in.h"
#include "server/batches/listing.h"
#include "server/state/state_store.h"

namespace zinc_rt::server {

class StoredFiles {
 public:
  static constexpr std::int64_t kKept_s = 30 * 86400;  // a file is removed when it is this old
  // The following constants limit a tenant's files, and the rows of its files and batches. Uploads and batches that
  // would exceed a limit are refused.
  static constexpr std::uint64_t kMostBytes = 1u << 30;
  static constexpr std::size_t kMostFiles = 10000;            // per tenant
  static constexpr std::size_t kMostUploadBytes = 100000000;  // per file
  static constexpr std::size_t kMostNameBytes = 255;

  explicit StoredFiles(StateStore& store) : store_(store) {}
  // Creates the folder. If `folder` is empty, the server stores no files and every function below returns an error.
  // Errors: kUnavailable.
  Status open(const std::string& folder);
  // Returns an error if the server stores no files. Errors: 501; the message says how to start the server so that it
  // does.
  ApiResult<void> expect_kept() const;

  // Stores an upload. Like the functions below, it returns OpenAI's file object. Errors: those of the disk and the
  // state file; 400 beyond a bound.
  ApiResult<Json> upload(const std::string& tenant, const std::string& name, std::string_view content);
  // Registers the existing data at path_of(id), such as a batch's output, as a file of the tenant. May be called twice.
  ApiResult<void> adopt(const std::string& tenant, const std::string& id, const std::string& name);
  // Returns the file's object. `param` is the name of the field that held the id, for the error 404.
  ApiResult<Json> find(const std::string& tenant, const std::string& id, const char* param) const;
  // Returns the JSON text of a list. If `purpose` is empty, lists all files. Errors: 400 if the tenant has no file
  // `after`.
  ApiResult<std::string> list(const std::string& tenant, const std::string& purpose, const ListPage& page) const;
  ApiResult<void> remove(const std::string& tenant, const std::string& id);
  // Returns how many more bytes the tenant may store. Bytes that note_growing() counts are subtracted.
  ApiResult<std::uint64_t> room_of(const std::string& tenant) const;
  // Sets how many bytes are counted for data that is not a registered file yet, such as the output of a running batch.
  // Call it with 0 when the batch has ended or its output has been registered. Returns false if the tenant has no room
  // for more.
  bool note_growing(const std::string& tenant, const std::string& id, std::uint64_t n_bytes);
  std::string path_of(const std::string& id) const { return folder_ + "/" + id; }

  // names() returns all files of a tenant. remove_contents() deletes their contents, for example after a tenant and its
  // rows were removed.
  ApiResult<std::vector<ObjectName>> names(const std::string& tenant) const;
  void remove_contents(const std::vector<ObjectName>& files) const;
  // Removes files older than kKept_s, except those for which is_in_use returns true.
  void sweep(std::int64_t now_s,
             const std::function<bool(const std::string& tenant, const std::string& id)>& is_in_use);
  // Removes data in the folder that has no row in the state file, because the process was killed. The data of the ids
  // in `others`, which have no row yet, stays.
  Status remove_strays(const std::set<std::string>& others) const;

 private:
  ApiResult<Json> write_upload(const std::string& tenant, const std::string& id, const std::string& name,
                               std::string_view content);
  ApiResult<std::uint64_t> room_beside_growing(const std::string& tenant) const;  // REQUIRES: mutex_
  ApiResult<Json> put(const std::string& tenant, const std::string& id, const std::string& name, std::uint64_t n_bytes,
                      const char* purpose);

  StateStore& store_;
  std::string folder_;
  mutable std::mutex mutex_;
  // growing_[tenant][id] is the number of bytes of data that has no row yet.
  std::map<std::string, std::map<std::string, std::uint64_t>> growing_;
};

}  // namespace zinc_rt::server
