// ServerCore is the state that the endpoints share: the engine, its models and tenants, and the work queues.
// Thread rule: it is set up before the first request. After that each member's own rule applies.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/steady_ms.h"
#include "base/work_queue.h"
#include "server/batches/batches.h"
#include "server/batches/stored_files.h"
#include "server/metrics.h"
#include "server/models/model_folders.h"
#include "server/models/models.h"
#include "server/models/on_demand.h"
#include "server/resumable_stream.h"
#include "server/router.h"
#include "server/state/state_store.h"
#include "server/tenants/tenants.h"
#include "server/transport/transport.h"

namespace zinc_rt::server {

struct ServerCore {
  ServerCore(Engine engine, std::unique_ptr<StateStore> store, std::string version)
      : engine(std::move(engine)),
        store(std::move(store)),
        metrics(std::move(version)),
        models(this->engine),
        tenants(this->engine, *this->store),
        files(*this->store),
        batches(*this) {}

  Engine engine;
  std::unique_ptr<StateStore> store;
  Metrics metrics;
  Models models;
  ModelFolders model_folders;
  TenantRegistry tenants;
  StreamRegistry streams;
  StoredFiles files;
  Batches batches;
  // Runs handlers of requests; the owner of a task is the tenant. A tenant's tasks use at most 3 of the 4 threads, so
  // that one thread is always left for other tenants.
  WorkQueue work{4, 3, WorkQueue::Priority::kBehindSteps};
  WorkQueue ends{2};    // completes answers when their generations have ended
  WorkQueue slow{1};    // loads and unloads models
  WorkQueue probes{1};  // probes the engine, one probe at a time
  // Sends files to clients. Each task sends one piece of a file, so that several clients are served at the same time.
  WorkQueue transfers{1, 1, WorkQueue::Priority::kBehindSteps};
  OnDemand on_demand{engine, models, work, slow, is_draining};
  // `status_transport` serves probes and metrics on a second port; null if none is configured.
  std::unique_ptr<Transport> transport, status_transport;
  std::atomic<std::uint64_t> max_answer_bytes{0}, max_body_bytes{0};
  // Limits the memory of JSON: of bodies while they are parsed and read, and of conversations that are loaded from the
  // state file or will be stored in it (bytes_as_parsed). A text counts as three times its bytes; many small values
  // count as more.
  static constexpr std::size_t kMostParsed = 512u << 20, kMostParsedOfTenant = 192u << 20;
  std::shared_ptr<ByteBudget> parsed =
      std::make_shared<ByteBudget>(ByteBudget::Limits{kMostParsed, SIZE_MAX, kMostParsedOfTenant});
  // True: unknown fields of generating requests are ignored; false: they are refused.
  std::atomic<bool> is_tolerant{false};
  std::atomic<bool> is_draining{false};
  // Probes report "not ready", so that load balancers send requests elsewhere. Requests are still accepted.
  std::atomic<bool> is_leaving{false};
  std::atomic<bool> is_closing{false};  // running requests are aborted
  std::atomic<bool> is_failed{false};   // the device fails every step
  // Time at which the longest-running step of all devices began. If no step runs, the last time at which a step
  // loop looked for work. In ms on the steady clock. A thread of the server updates it every kWatchMs.
  std::atomic<std::int64_t> last_alive_ms{0};
  std::atomic<std::uint64_t> n_steps{0};         // number of steps of all loaded models at the last update
  static constexpr std::int64_t kWatchMs = 500;  // interval between two updates of the members above
  std::atomic<std::uint32_t> n_generating{0};    // answers that are being generated
  // Number of calls for embeddings that have not ended. Such a call may still submit inputs.
  std::atomic<std::uint32_t> n_embedding{0};

  // The engine counts as hung if no step has ended for longer than this.
  static constexpr std::int64_t kHungMs = 30000;
  bool is_hung() const;
  // Returns why the server accepts no requests now; an empty text if it does.
  std::string why_not_ready() const;
  // Ends running requests and the threads of the queues. Errors: the rows that the state store could not write
  // (StateStore::close()).
  Status close();
};

// An answer lists the ignored fields of its request in this header.
constexpr const char* kIgnoredHeader = "x-zinc-ignored-fields";

// Returns 24 random hex digits.
std::string new_id();

// Each of the following functions adds the paths of one group of endpoints to the router.
void add_generation_routes(Router& router, ServerCore& core);
void add_messages_routes(Router& router, ServerCore& core);   // Anthropic's paths other than generation
void add_responses_routes(Router& router, ServerCore& core);  // stored answers of /v1/responses
void add_ollama_routes(Router& router, ServerCore& core);     // Ollama's paths other than generation
void add_embedding_routes(Router& router, ServerCore& core);
void add_rerank_routes(Router& router, ServerCore& core);
void add_stream_routes(Router& router, ServerCore& core);
void add_file_routes(Router& router, ServerCore& core);   // OpenAI's /v1/files, for batches
void add_batch_routes(Router& router, ServerCore& core);  // OpenAI's /v1/batches
void add_model_routes(Router& router, ServerCore& core);
void add_prefix_routes(Router& router, ServerCore& core);
void add_tenant_routes(Router& router, ServerCore& core);
void add_health_routes(Router& router, ServerCore& core);
// Adds the paths of options.metrics_listen, which need no key: probes, load and metrics.
void add_status_routes(Router& router, ServerCore& core, bool shows_tenants);
void add_ui_routes(Router& router, ServerCore& core);
// Serves /local, a page with an engine in it. page_engine: the path of zinc_rt.wasm. Errors: kNotFound, and kInvalidArgument
// if the file is no WebAssembly module.
Status add_local_page_routes(Router& router, ServerCore& core, const std::string& page_engine);

// If previous_response_id names an earlier response, inserts its input and output before the body's input. Also sets
// whether this response is stored. Errors: 400, 404, those of hold_parsed().
ApiResult<void> find_earlier_response(ServerCore& core, const Exchange& exchange, Json& body, ByteBudget::Hold& held);
// Changes the amount that `held` counts in core.parsed to n_bytes. Error messages begin with `what`. Errors: 400 if the
// amount could never fit; 429 or 503 if it may fit later.
ApiResult<void> hold_parsed(ServerCore& core, const Exchange& exchange, ByteBudget::Hold& held, std::uint64_t n_bytes,
                            const char* what = "[responses] the conversation");

// Returns the tenant whose files and batches the request accesses. Errors: 403 for an admin's key.
ApiResult<std::string> tenant_name(const Exchange& exchange);

// Runs the route's handler on a thread of `work`, unless the client has disconnected by then.
void post_to_handler(ServerCore& core, const Route& route, const std::shared_ptr<Exchange>& exchange);
// Returns the owner of the request's tasks in `work` (base/work_queue.h).
std::string owner_of(const Exchange& exchange);
// Finds the model of this name with OnDemand::find() and calls `then` with the exchange and the model.
void find_model(ServerCore& core, Exchange& exchange, const std::string& name,
                std::function<void(Exchange&, const ApiResult<ServedModel>&)> then);

// Answers with a JSON body.
void answer(ServerCore& core, Exchange& exchange, std::string body, int status = 200);
void answer(ServerCore& core, Exchange& exchange, const ApiError& error);
void answer_with(ServerCore& core, Exchange& exchange, ApiResult<std::string> result, int status = 200);
// For Route::handle: answers with the result of work(core, exchange), which is the text of a body or an error.
template <class Work>
auto answering(ServerCore& core, Work work) {
  return [&core, work](Exchange& exchange) { answer_with(core, exchange, work(core, exchange)); };
}
// Returns the answer with this error, in the form of the path's API.
HttpResponse refusal(ServerCore& core, const std::string& path, const std::string& request_id, const ApiError& error);

}  // namespace zinc_rt::server
