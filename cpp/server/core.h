// What the endpoints share.
// Thread rule: set up before the first request; then each member by its own rule.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "server/metrics.h"
#include "server/model_folders.h"
#include "server/models.h"
#include "server/resumable_stream.h"
#include "server/router.h"
#include "server/state_store.h"
#include "server/tenants.h"
#include "server/transport/transport.h"
#include "server/work_queue.h"

namespace zinc_rt::server {

struct ServerCore {
  ServerCore(Engine engine, std::unique_ptr<StateStore> store, std::string version)
      : engine(std::move(engine)),
        store(std::move(store)),
        metrics(std::move(version)),
        models(this->engine),
        tenants(this->engine, *this->store) {}

  Engine engine;
  std::unique_ptr<StateStore> store;
  Metrics metrics;
  Models models;
  ModelFolders model_folders;
  TenantRegistry tenants;
  StreamShelf streams;
  WorkQueue work{4, 3};  // requests, by tenant; a thread is always left for another
  WorkQueue ends{2};     // of answers
  WorkQueue slow{1};     // loading of models
  WorkQueue probes{1};   // of the engine, one at a time
  std::unique_ptr<Transport> transport;
  std::atomic<std::uint64_t> max_answer_bytes{0};
  std::atomic<bool> is_draining{false};
  std::atomic<bool> is_failed{false};  // the device fails every step
  // When the engine's step thread last gave way, on the steady clock in ms.
  std::atomic<std::int64_t> last_alive_ms{0};
  std::atomic<std::uint64_t> n_steps{0};         // of all models that there are, as of then
  static constexpr std::int64_t kWatchMs = 500;  // between two looks at these
  std::atomic<std::uint32_t> n_generating{0};    // answers under way

  // Without a step's end for longer than this it counts as hung.
  static constexpr std::int64_t kHungMs = 30000;
  bool is_hung() const;
  // Why it takes no requests now; empty: it does.
  std::string why_not_ready() const;
};

std::int64_t steady_ms();
// 24 random hex digits.
std::string new_id();

// Each adds its paths.
void add_generation_routes(Router& router, ServerCore& core);
void add_stream_routes(Router& router, ServerCore& core);
void add_model_routes(Router& router, ServerCore& core);
void add_tenant_routes(Router& router, ServerCore& core);
void add_health_routes(Router& router, ServerCore& core);
void add_ui_routes(Router& router, ServerCore& core);

// 400: the model's template writes the same prompt with tools and without.
ApiError tools_not_read(const ServedModel& model);

// Answers with a JSON body.
void answer(ServerCore& core, Exchange& exchange, std::string body, int status = 200);
void answer(ServerCore& core, Exchange& exchange, const ApiError& error);
// The answer to a request whose body nobody reads.
HttpResponse refusal(ServerCore& core, const std::string& request_id, const ApiError& error);

}  // namespace zinc_rt::server
