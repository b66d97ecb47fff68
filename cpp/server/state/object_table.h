// The rows of files and batches in a StateFile. A request reads one row, a page of rows, or a sum that an index
// answers. It reads them over the reader's connection, so that no list makes the ledger wait.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/state/state_file.h"

namespace zinc_rt::server {

inline constexpr const char *kFileKind = "file", *kBatchKind = "batch";

// A file or batch in the form of its API.
struct StoredObject {
  std::string kind, tenant, id;
  std::int64_t time_s = 0;            // since 1970: when it was made
  std::string label;                  // what lists are narrowed to: a file's purpose, a batch's status
  std::uint64_t n_content_bytes = 0;  // that it has beside its row
  std::string body;                   // JSON
};

struct ObjectName {
  std::string tenant, id;
};

struct ObjectSum {
  std::uint64_t n_objects = 0, n_bytes = 0;  // bytes: of the rows and of their contents
};

struct ObjectQuery {
  std::string kind, tenant;
  std::string label;  // empty: all
  std::string after;  // the id before the first one that is wanted; empty: from the first one on
  bool is_ascending = false;
  std::size_t limit = 0;
};
struct ObjectPage {
  std::vector<StoredObject> objects;
  bool has_more = false;
};

class ObjectTable {
 public:
  explicit ObjectTable(StateFile& file) : file_(file) {}

  // Replaces an earlier row of the same kind, tenant and id, and is committed when it returns. Errors of all:
  // kUnavailable for what could not be stored, kCorrupt for what cannot be read.
  Status put(const StoredObject& object);
  Result<std::optional<StoredObject>> find(const std::string& kind, const std::string& tenant, const std::string& id);
  Result<bool> remove(const std::string& kind, const std::string& tenant, const std::string& id);  // false: none was
  // A page of objects, by time, then id. Nothing if the tenant has no object `after` of this kind.
  Result<std::optional<ObjectPage>> page(const ObjectQuery& query);
  // The sum over a tenant's objects of one kind.
  Result<ObjectSum> sum(const std::string& kind, const std::string& tenant);
  // The objects of a kind with one of these labels, of all tenants, by time.
  Result<std::vector<StoredObject>> labelled(const std::string& kind, std::span<const char* const> labels);
  // The objects of a kind made before this time; `tenant` empty: of all tenants.
  Result<std::vector<ObjectName>> names(const std::string& kind, const std::string& tenant,
                                        std::int64_t before_s = INT64_MAX);

 private:
  StateFile& file_;
};

}  // namespace zinc_rt::server
