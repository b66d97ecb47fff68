// ObjectTable stores the objects of files and batches as rows of a StateFile. An API request reads one row, a page of
// rows, or a sum. An index of the database answers each of these quickly. Reads use the file's reading connection, so
// that they never delay the ledger's writer.
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

// StoredObject is a file or a batch. `body` is its object in OpenAI's API.
struct StoredObject {
  std::string kind, tenant, id;
  std::int64_t time_s = 0;            // creation time in seconds since 1970
  std::string label;                  // a file's purpose or a batch's status; lists can be filtered by it
  std::uint64_t n_content_bytes = 0;  // bytes of content stored outside this row
  std::string body;                   // JSON
};

struct ObjectName {
  std::string tenant, id;
};

struct ObjectSum {
  std::uint64_t n_objects = 0, n_bytes = 0;  // n_bytes: the bytes of the rows and of their contents
};

struct ObjectQuery {
  std::string kind, tenant;
  std::string label;  // empty: objects with any label
  std::string after;  // the page begins after the object with this id; empty: at the first object
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

  // Inserts the object, or replaces the object of the same kind, tenant and id. The change is committed before this
  // returns. Errors of all functions here: kUnavailable if a write fails, kCorrupt if a read fails.
  Status put(const StoredObject& object);
  Result<std::optional<StoredObject>> find(const std::string& kind, const std::string& tenant, const std::string& id);
  // Removes an object. Returns false if no such object was stored.
  Result<bool> remove(const std::string& kind, const std::string& tenant, const std::string& id);
  // Returns a page of objects, ordered by time, then id. Returns nullopt if the tenant has no object of this kind with
  // the id `after`.
  Result<std::optional<ObjectPage>> page(const ObjectQuery& query);
  // Counts a tenant's objects of one kind and their bytes.
  Result<ObjectSum> sum(const std::string& kind, const std::string& tenant);
  // Returns all tenants' objects of a kind that have one of these labels, ordered by time.
  Result<std::vector<StoredObject>> labelled(const std::string& kind, std::span<const char* const> labels);
  // Returns the names of objects of a kind that were created before `before_s`. If `tenant` is empty, returns the names
  // for all tenants.
  Result<std::vector<ObjectName>> names(const std::string& kind, const std::string& tenant,
                                        std::int64_t before_s = INT64_MAX);

 private:
  StateFile& file_;
};

}  // namespace zinc_rt::server
