// Batches holds the batches of all tenants. The batches of a tenant run one after another. Batches of different tenants
// run at the same time. A batch that has not ended at shutdown continues at the next start.
// Thread rule: call start() first and close() last. Between these calls, any thread may call the other members.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_queue.h"
#include "server/batches/batch_run.h"
#include "server/batches/listing.h"

namespace zinc_rt::server {

class Batches {
 public:
  static constexpr std::int64_t kWindow_s = 86400;     // a batch that has not ended after this time expires
  static constexpr std::size_t kMostUnfinished = 256;  // per tenant

  explicit Batches(ServerCore& core) : core_(core) {}
  // Continues the batches that have not ended. REQUIRES: core's files are open; `router` outlives this. Errors: those
  // of reading the state file.
  Status start(const Router& router);
  // Called periodically. Retries lines and ends batches whose time is over.
  void look();
  // Ends the threads. Running lines are cancelled, and run again after the next start().
  void close();
  std::uint32_t n_under_way() const;  // how many lines are being run

  // The following functions take and return OpenAI's batch objects, as JSON. Errors: 400 that names the field; 404; 409
  // for a batch that has ended; 429 for too many.
  ApiResult<Json> create(const std::string& tenant, const Json& body);
  ApiResult<Json> find(const std::string& tenant, const std::string& id);
  ApiResult<std::string> list(const std::string& tenant, const ListPage& page);
  ApiResult<Json> cancel(const std::string& tenant, const std::string& id);
  // Returns the id of a batch that has not ended and uses this input file; empty if no batch uses it.
  std::string user_of(const std::string& tenant, const std::string& file_id) const;
  void forget(const std::string& tenant);  // cancels the batches of a removed tenant

 private:
  struct Item {
    std::string tenant, id, input;
    std::int64_t expires_at = 0;
    std::atomic<bool> is_cancelled{false};
    std::shared_ptr<BatchRun> run;  // guarded by mutex_; null until the tenant's earlier batches have ended
  };
  struct Lane {  // the batches of one tenant that have not ended, in order
    std::deque<std::shared_ptr<Item>> items;
    bool is_posted = false;
  };
  // A function that changes a batch's object and returns true, or returns false if nothing is to be changed. change()
  // returns the resulting object.
  using Change = std::function<ApiResult<bool>(Json& batch)>;
  ApiResult<Json> change(const std::string& tenant, const std::string& id, const Change& change);
  Status put(const std::string& tenant, const Json& batch);
  void add(const std::string& tenant, const Json& batch);  // REQUIRES: mutex_
  std::shared_ptr<Item> item_of(const std::string& tenant, const std::string& id) const;
  Json with_counts(const std::string& tenant, Json batch) const;

  void wake(const std::string& tenant);
  void advance(const std::string& tenant);
  // Returns true if the batch is over.
  bool work_on(const std::shared_ptr<Item>& item, const std::shared_ptr<TenantEntry>& entry);
  bool take_over(const std::shared_ptr<Item>& item, const std::shared_ptr<BatchRun>& run);
  void remove_outputs(const std::string& id) const;
  ApiResult<std::shared_ptr<BatchRun>> begin(const Item& item, const std::shared_ptr<TenantEntry>& entry);
  bool finish(const Item& item, BatchRun& run);
  ApiResult<void> fail_batch(const Item& item, const std::vector<LineError>& errors);
  void sweep(std::int64_t now_s);

  ServerCore& core_;
  const Router* router_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::string, Lane> lanes_;
  std::mutex changing_;  // held during a change of an object; never locked while mutex_ is held
  std::int64_t swept_s_ = 0;
  WorkQueue work_{2, 1, WorkQueue::Priority::kBehindSteps};  // the owner of a task is its tenant
};

}  // namespace zinc_rt::server
