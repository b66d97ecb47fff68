// Loads models when a request names them, and unloads them when nobody has used them for a while.
// Thread rule: any thread. Loads and unloads happen on the queue of slow tasks alone, one after the other.
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
  std::vector<std::string> aliases;  // further names
  std::uint64_t bytes = 0;           // of its files
  std::int64_t created_s = 0;        // when its file was written
};

struct OnDemandOptions {
  // The models that exist now. Called for each listing and for each unknown name, from any thread.
  std::function<std::vector<OfferedModel>()> offered;
  EngineOptions engine;          // of each model
  std::uint32_t max_loaded = 3;  // at once; at least 1
  double keep_alive_s = 300;     // a model that is idle for longer is unloaded; below 0: it stays
};

class OnDemand {
 public:
  using Then = std::function<void(ApiResult<ServedModel>)>;
  // The asking request: its owner among the tasks of `work` and among loads, and whether it has left.
  struct Asker {
    std::string owner;
    std::stop_token gone;
    std::shared_ptr<TenantEntry> payer;  // whose loads are counted; null: nobody's
    bool is_of_batch = false;            // no model that others have used lately makes room for it
  };

  // All of these must outlive the queues' last task.
  OnDemand(Engine& engine, Models& models, WorkQueue& work, WorkQueue& slow, const std::atomic<bool>& is_draining)
      : engine_(engine), models_(models), work_(work), slow_(slow), is_draining_(is_draining) {}

  void set(std::optional<OnDemandOptions> options);  // nothing: only models that are loaded are found

  // Calls `then` with the model of this name. If it is loaded: at once, on this thread. Otherwise on a thread of
  // `work`, once it is loaded; if the client has left by then, `then` is destroyed without a call. Empty name: the
  // first model of the configuration, else the only existing one. Errors: 404 with the ids; those of Models::load; 429
  // if the payer has had too many models loaded; 503 if no model can make room or too many requests wait.
  void find(const std::string& name, Asker asker, Then then);
  // A model that is not loaded, by its name. Does not load it. Errors: 404 with the ids.
  ApiResult<OfferedModel> find_offered(const std::string& name) const;
  std::vector<OfferedModel> not_loaded() const;
  bool is_loading(const std::string& id) const;

  // Unloads a model that a request had loaded, unless requests use it. Does nothing for other models.
  void release(const std::string& id);
  // Called now and then: unloads idle models.
  void look(const EngineStats& stats);

 private:
  struct Waiter {
    Asker asker;
    Then then;
  };
  struct Use {
    std::int64_t last_ms = 0;
    bool is_leaving = false;
    std::map<std::string, std::int64_t> by_owner = {};  // when each used it last
  };
  // A model that another tenant used within this time is not unloaded to make room, unless that tenant, even without
  // it, holds more models than the asking one.
  static constexpr std::int64_t kLatelyMs = 30'000;
  static constexpr std::size_t kMostWaiting = 4096;  // requests for one model

  static double idle_s(const Use& use);
  std::optional<OnDemandOptions> options() const;
  std::vector<OfferedModel> offered() const;
  // The model with this name or alias, letter case aside. For an empty name, the only one. Null: none.
  static const OfferedModel* pick(const std::vector<OfferedModel>& offered, const std::string& name);
  ApiError not_found(const std::string& name, const std::vector<OfferedModel>& offered) const;
  ApiResult<ServedModel> find_loaded(const std::string& name, const std::string& owner);

  // On the slow queue.
  void load_for_waiters(const OfferedModel& wanted);
  ApiResult<ServedModel> load(const OfferedModel& wanted, const Asker& asker);
  ApiResult<void> make_room(std::uint32_t most, const Asker& asker);
  bool unload_idlest(const Asker& asker);
  // The model to unload for the asker, among those that requests had loaded and nobody uses now. Empty: none.
  std::string idlest_for(const Asker& asker, const std::vector<ServedModel>& loaded, const EngineStats& stats);
  void unload_if_idle(const std::string& id);
  ApiResult<void> unload(const std::string& id);

  Engine& engine_;
  Models& models_;
  WorkQueue &work_, &slow_;
  const std::atomic<bool>& is_draining_;
  mutable std::mutex mutex_;
  std::optional<OnDemandOptions> options_;
  std::map<std::string, std::vector<Waiter>> waiting_;  // by id; there is an entry while it loads or waits to
  std::map<std::string, Use> uses_;                     // of models that requests had loaded, by id
  std::map<std::string, std::string> ids_;  // of models that were asked for, by other names of them in lower case
};

}  // namespace zinc_rt::server
