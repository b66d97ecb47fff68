// The data that outlives the process: what each tenant used, and the tenants and keys made at run time. It is a SQLite
// file in WAL mode, so committed data survives a kill at any moment. One writer thread commits all waiting rows at
// once. Reads have their own connection, so the ledger never waits for them.
// Thread rule: any thread; `committed` callbacks run on the writer thread and must not block.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/state/object_table.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

// One finished API request. Its token counts are those of its `usage`.
struct UsageRow {
  std::string id, tenant, model, endpoint, finish;
  std::int64_t time_s = 0;  // since 1970
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

struct UsageTotal {
  std::string model, day, finish;  // day: 2026-11-21, UTC
  std::uint64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

struct StoredKey {
  std::string hash;         // SHA-256 in hex
  std::int64_t made_s = 0;  // since 1970; 0: not known
};

struct StoredTenant {
  std::string name, settings;   // JSON, as PATCH /v1/tenants takes it
  std::vector<StoredKey> keys;  // made at run time
};

// A kept answer of /v1/responses: the conversation before it, and the answer itself.
struct StoredResponse {
  std::string id, tenant, body;  // body: {"input": [items], "response": {..}}
  std::int64_t time_s = 0;       // since 1970
};

class StateStore {
 public:
  static constexpr std::int64_t kResponsesKept_s = 86400;     // how long they are kept
  static constexpr std::uint64_t kMostResponses = 64u << 20;  // bytes of a tenant; the oldest ones go

  // `path` empty: in memory. Errors: kUnavailable for a file that cannot be opened or written; kCorrupt for one that is
  // not a state file, is damaged, or is of a later version.
  static Result<std::unique_ptr<StateStore>> open(const std::string& path);
  virtual ~StateStore() = default;  // as close()

  // Calls `committed` once the row would survive a kill, or when the disk has refused it. A refused row is logged,
  // counts as trouble(), and is tried again every second until it is written.
  virtual void record(UsageRow row, std::function<void()> committed) = 0;
  // Why rows cannot be written now; empty: they can. A file that is removed or replaced while in use is noticed within
  // kLook. A removed file is written again; if another file took its name, nothing is written.
  virtual std::string trouble() const = 0;
  static constexpr std::chrono::milliseconds kLook{500};
  // Commits everything recorded; later calls do nothing. Errors: kUnavailable with the number of rows that could not be
  // written; each of them is then in the log.
  virtual Status close() = 0;
  virtual Result<std::vector<UsageTotal>> totals(const std::string& tenant) = 0;

  // Committed when it returns. Drops answers that are too old, and the tenant's oldest ones beyond its bytes. Errors:
  // kUnavailable; kExhausted for an answer larger than the tenant's bytes.
  virtual Status put_response(const StoredResponse& response) = 0;
  // The size of its body in bytes; nothing if the tenant has no answer of this id.
  virtual Result<std::optional<std::uint64_t>> response_bytes(const std::string& tenant, const std::string& id) = 0;
  // The body; nothing if the tenant has no answer of this id.
  virtual Result<std::optional<std::string>> response(const std::string& tenant, const std::string& id) = 0;
  virtual Result<bool> remove_response(const std::string& tenant, const std::string& id) = 0;  // false: there was none

  virtual ObjectTable& objects() = 0;  // files and batches

  virtual Status put_tenant(const StoredTenant& tenant) = 0;
  virtual Status remove_tenant(const std::string& name) = 0;
  virtual Result<std::vector<StoredTenant>> tenants() = 0;
};

}  // namespace zinc_rt::server
