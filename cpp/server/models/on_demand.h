// OnDemand loads a model when a request names it, and unloads models that no request has used for keep_alive_s.
// Thread rule: any thread. Loads and unloads run only on the queue of slow tasks, one after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "server/models/models.h"
#include "server/tenants/tenant_entry.h"

namespace zinc_rt::server {

// A model that may be loaded.
struct OfferedModel {
  std::string id, path;
  std::vector<std::string> aliases;  // other names by which clients may call it
  std::uint64_t bytes = 0;           // the size of its files
  std::int64_t created_s = 0;        // when its file was last written; seconds since 1970
};

struct OnDemandOptions {
  // Returns the models that exist now. It is called for each listing and for each unknown name, from any thread.
  std::function<std::vector<OfferedModel>()> offered;
  EngineOptions engine;          // the options for each model
  std::uint32_t max_loaded = 3;  // the most models that are loaded at the same time; at least 1
  double keep_alive_s = 300;     // seconds after which an idle model is unloaded; below 0: never
};

class OnDemand {
 public:
  using Then = std::function<void(ApiResult<ServedModel>)>;
  // Asker describes the request that needs a model: its tenant (owner), the tenant whose rate of loads is limited
  // (payer), and whether the request is a line of a batch.
  struct Asker {
    std::string owner;
    std::stop_token gone;
    std::shared_ptr<TenantEntry> payer;  // the tenant whose rate of loads is limited; null: no limit
    bool is_of_batch = false;            // true: no model that others used lately is unloaded to make room
  };

  // All arguments must outlive the last task of the queues.
  OnDemand(Engine& engine, Models& models, WorkQueue& work, WorkQueue& slow, const std::atomic<bool>& is_draining)
      : engine_(engine), models_(models), work_(work), slow_(slow), is_draining_(is_draining) {}

  // Nullopt: only models that are loaded can be found, and look() unloads those that requests loaded.
  void set(std::optional<OnDemandOptions> options);

  // Calls `then` with the model of this name, or with an error. An empty name means the first configured model, or the
  // only existing one. If the model is loaded, calls `then` at once on this thread. Otherwise loads the model, then
  // calls `then` on a thread of `work`. If the client has disconnected before that call, `then` is destroyed without a
  // call. Errors: 404 that lists the ids if there is no such model; the errors of Models::load; 429 if requests of the
  // payer (Asker::payer) have caused too many loads; 503 if no loaded model may be unloaded to make room, or if too
  // many requests wait for the model.
  void find(const std::string& name, Asker asker, Then then);
  // Returns the description of a model that could be loaded but is not loaded. Errors: 404 that lists the ids.
  ApiResult<OfferedModel> find_offered(const std::string& name) const;
  std::vector<OfferedModel> not_loaded() const;
  bool is_loading(const std::string& id) const;

  // Unloads the model if a request loaded it and no request uses it. Otherwise does nothing.
  void release(const std::string& id);
  // Called periodically. Unloads idle models.
  void look(const EngineStats& stats);

 private:
  struct Waiter {
    Asker asker;
    Then then;
  };
  struct Use {
    std::int64_t last_ms = 0;
    bool is_leaving = false;                            // its unload waits on the slow queue
    bool is_released = false;                           // nobody needs it to stay, however lately it was used
    std::map<std::string, std::int64_t> by_owner = {};  // time of last use per owner, in ms on the steady clock
  };
  // A model that another tenant used within this time is not unloaded to make room, unless the other tenant would still
  // use more models than the tenant of the request.
  static constexpr std::int64_t kLatelyMs = 30'000;
  static constexpr std::size_t kMostWaiting = 4096;  // the most requests that may wait for one model

  // Whether the model should be unloaded if no request uses it now. The caller holds mutex_.
  bool is_idle(const Use& use) const;
  std::optional<OnDemandOptions> options() const;
  std::vector<OfferedModel> offered() const;
  // Returns the model with this name or alias; letter case is ignored. An empty name returns the only model. Returns
  // null if no model fits.
  static const OfferedModel* pick(const std::vector<OfferedModel>& offered, const std::string& name);
  ApiError not_found(const std::string& name, const std::vector<OfferedModel>& offered) const;
  ApiResult<ServedModel> find_loaded(const std::string& name, const std::string& owner);

  // The functions below run on the slow queue.
  void load_for_waiters(const OfferedModel& wanted);
  ApiResult<ServedModel> load(const OfferedModel& wanted, const Asker& asker);
  ApiResult<void> make_room(std::uint32_t most, const Asker& asker);
  bool unload_idlest(const Asker& asker);
  // Returns the id of the model to unload to make room for the asker's model. Only models that requests loaded and no
  // request uses now are considered. Empty if no model may be unloaded.
  std::string idlest_for(const Asker& asker, const std::vector<ServedModel>& loaded, const EngineStats& stats);
  void unload_if_idle(const std::string& id);
  ApiResult<void> unload(const std::string& id);

  Engine& engine_;
  Models& models_;
  WorkQueue &work_, &slow_;
  const std::atomic<bool>& is_draining_;
  mutable std::mutex mutex_;
  // Nullopt: models are not loaded on demand. Guarded by mutex_, like the members below.
  std::optional<OnDemandOptions> options_;
  // The requests that wait for a model. Key: the model's id. A model has an element while it is being loaded or waits
  // for its load.
  std::map<std::string, std::vector<Waiter>> waiting_;
  std::map<std::string, Use> uses_;         // key: id; when a model was used; only models that requests loaded
  std::map<std::string, std::string> ids_;  // key: another name of a requested model, in lower case; value: its id
};

}  // namespace zinc_rt::server
