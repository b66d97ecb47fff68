// StateStore stores the data that must survive the end of the process: what each tenant used, the tenants and keys made
// at run time, stored answers, files and batches. It is a SQLite file in WAL mode, so that committed data survives a
// kill at any moment. One writer thread commits all waiting rows in one transaction. Reads use a connection of their
// own, so that they never delay the ledger.
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

// UsageRow is a row of the ledger, for one finished API request. Its token counts equal those in the answer's `usage`.
struct UsageRow {
  std::string id, tenant, model, endpoint, finish;
  std::int64_t time_s = 0;  // seconds since 1970
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

// UsageTotal is the sum of a tenant's ledger rows with the same model, day and finish reason.
struct UsageTotal {
  std::string model, day, finish;  // day: in UTC, such as 2026-11-21
  std::uint64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

struct StoredKey {
  std::string hash;         // SHA-256 in hex
  std::int64_t made_s = 0;  // seconds since 1970; 0: not known
};

struct StoredTenant {
  std::string name, settings;   // settings: JSON, in the form of PATCH /v1/tenants
  std::vector<StoredKey> keys;  // keys that were made at run time
};

// StoredResponse is a stored answer of /v1/responses, with the conversation before it.
struct StoredResponse {
  std::string id, tenant, body;  // body: {"input": [items], "response": {..}}
  std::int64_t time_s = 0;       // seconds since 1970
};

class StateStore {
 public:
  static constexpr std::int64_t kResponsesKept_s = 86400;  // how long answers are stored
  // The most bytes of stored answers per tenant. Beyond this, the tenant's oldest answers are removed.
  static constexpr std::uint64_t kMostResponses = 64u << 20;

  // If `path` is empty, the data is in memory. Errors: kUnavailable for a file that cannot be opened or written;
  // kCorrupt for a file that is not a state file, is damaged, or has a later version.
  static Result<std::unique_ptr<StateStore>> open(const std::string& path);
  virtual ~StateStore() = default;  // does the same as close()

  // Adds a row to the ledger. Calls `committed` when the row is committed, or when writing it failed. After a failure
  // the row is logged, trouble() reports the reason, and writing is retried every second until it succeeds.
  virtual void record(UsageRow row, std::function<void()> committed) = 0;
  // Returns why rows cannot be written now, or an empty text if rows can be written. The store notices within kLook
  // that its file was removed or replaced. A removed file is written again. If another file is now at the path, nothing
  // is written.
  virtual std::string trouble() const = 0;
  static constexpr std::chrono::milliseconds kLook{500};
  // Commits all recorded rows. Later calls do nothing. Errors: kUnavailable with the number of rows that could not be
  // written; each of these rows is then written to the log.
  virtual Status close() = 0;
  virtual Result<std::vector<UsageTotal>> totals(const std::string& tenant) = 0;

  // Stores an answer and commits it. Removes answers older than kResponsesKept_s, and the tenant's oldest answers
  // beyond kMostResponses. Errors: kUnavailable; kExhausted for an answer larger than kMostResponses.
  virtual Status put_response(const StoredResponse& response) = 0;
  // Returns the size of the stored body in bytes, or nullopt if the tenant has no answer with this id.
  virtual Result<std::optional<std::uint64_t>> response_bytes(const std::string& tenant, const std::string& id) = 0;
  // Returns the stored body, or nullopt if the tenant has no answer with this id.
  virtual Result<std::optional<std::string>> response(const std::string& tenant, const std::string& id) = 0;
  // Removes an answer. Returns false if the tenant has no answer with this id.
  virtual Result<bool> remove_response(const std::string& tenant, const std::string& id) = 0;

  virtual ObjectTable& objects() = 0;  // files and batches

  virtual Status put_tenant(const StoredTenant& tenant) = 0;
  virtual Status remove_tenant(const std::string& name) = 0;
  virtual Result<std::vector<StoredTenant>> tenants() = 0;
};

}  // namespace zinc_rt::server
