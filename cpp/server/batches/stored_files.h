// The files of tenants: uploads for batches, and the output of batches. The content is in a folder beside the state
// file, the metadata in the state.
// Thread rule: open() first; then any thread.
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
  static constexpr std::int64_t kKept_s = 30 * 86400;  // since a file was made
  // The bounds on a tenant's files and on the rows of its files and batches. Beyond them no upload and no batch begins.
  static constexpr std::uint64_t kMostBytes = 1u << 30;
  static constexpr std::size_t kMostFiles = 10000;            // of a tenant
  static constexpr std::size_t kMostUploadBytes = 100000000;  // of one file
  static constexpr std::size_t kMostNameBytes = 255;

  explicit StoredFiles(StateStore& store) : store_(store) {}
  // Makes the folder. If it is empty, the server keeps nothing and refuses every call below. Errors: kUnavailable.
  Status open(const std::string& folder);
  // Errors: 501 that says how to start the server so that it keeps files.
  ApiResult<void> expect_kept() const;

  // The objects are OpenAI's. Errors: those of the disk and the state; 400 beyond a bound.
  ApiResult<Json> upload(const std::string& tenant, const std::string& name, std::string_view content);
  // Makes the data at path_of(id), such as a batch's output, a file of the tenant. Calling it twice does no harm.
  ApiResult<void> adopt(const std::string& tenant, const std::string& id, const std::string& name);
  // `param`: the field that had the id, for the 404.
  ApiResult<Json> find(const std::string& tenant, const std::string& id, const char* param) const;
  // The text of the list. `purpose` empty: all files. Errors: 400 if the tenant has no file `after`.
  ApiResult<std::string> list(const std::string& tenant, const std::string& purpose, const ListPage& page) const;
  ApiResult<void> remove(const std::string& tenant, const std::string& id);
  // How many more bytes a tenant may store, not counting what is being written.
  ApiResult<std::uint64_t> room_of(const std::string& tenant) const;
  // Counts bytes that are not in a file yet, such as the output of a running batch. 0: the batch ended or its output
  // became a file. Returns false if the tenant has no room for more.
  bool note_growing(const std::string& tenant, const std::string& id, std::uint64_t n_bytes);
  std::string path_of(const std::string& id) const { return folder_ + "/" + id; }

  // All files of a tenant. Their contents can be removed once their rows are gone, as those of a removed tenant.
  ApiResult<std::vector<ObjectName>> names(const std::string& tenant) const;
  void remove_contents(const std::vector<ObjectName>& files) const;
  // Removes files that are too old, except those with ids in use.
  void sweep(std::int64_t now_s,
             const std::function<bool(const std::string& tenant, const std::string& id)>& is_in_use);
  // Removes data in the folder that belongs to nobody, as a kill may leave it. `others`: ids that are not adopted yet.
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
  std::map<std::string, std::map<std::string, std::uint64_t>>
      growing_;  // bytes by tenant and id, of what has no row yet
};

}  // namespace zinc_rt::server
