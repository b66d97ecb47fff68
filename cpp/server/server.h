// Server serves the APIs of OpenAI, Anthropic and Ollama over HTTP, in front of one engine.
// Thread rule: any thread; start() and the destructor once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/access_log.h"
#include "server/models/models.h"
#include "server/models/on_demand.h"
#include "server/tenants/tenants.h"
#include "server/transport/transport.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

struct ServerOptions {
  TransportOptions transport;
  // Path of the state file (ledger, tenants, keys, stored answers); empty: the state is only in memory.
  std::string state_path;
  std::vector<TenantRegistry::Configured> tenants;
  std::vector<std::string> admin_key_hashes;
  // If no keys are configured: allow an address that other machines can reach, and on loopback accept any Host header.
  bool allow_anonymous = false;
  // Folders from which the API may load models. Absent: the folders of the models at startup. Empty list: none.
  std::optional<std::vector<std::string>> model_dirs;
  std::uint64_t max_answer_bytes = 64 << 20;  // approximate limit on one answer
  // Origins (sites) whose pages may call this server from a browser, such as "https://chat.example"; "*": any site.
  std::vector<std::string> cors_origins;
  // Path of the engine for web pages, zinc_rt.wasm (docs/browser.md): /local then is a page with this engine in it. Empty:
  // there is none.
  std::string page_engine;
  AccessLogOf access_log = AccessLogOf::kRequests;
  // metrics_listen is a second address, host:port, that answers probes, /metrics and /load without a key and without
  // TLS; empty: none. It shows tenants' names only if metrics_tenants is set.
  std::string metrics_listen;
  bool metrics_tenants = false;
  Objectives objectives;
  // If true, unknown fields of generating requests are ignored, and listed in an answer's header and in the log. If
  // false, they are refused.
  bool is_tolerant = false;
  // If absent, only the configured models and models that admins load are served.
  std::optional<OnDemandOptions> on_demand;
};

class Server {
 public:
  // Loads the models and listens. REQUIRES: `engine` has no models. Errors: those of Transport, StateStore and the
  // engine.
  static Result<std::unique_ptr<Server>> start(Engine engine, const std::vector<ModelSpec>& models,
                                               const ServerOptions& options);
  virtual ~Server() = default;  // does the same as close()
  // Ends running requests. Later calls do nothing. Errors: the rows that the state store could not write
  // (StateStore::close()).
  virtual Status close() = 0;

  virtual std::uint16_t port() const = 0;
  virtual std::uint16_t metrics_port() const = 0;  // the port of options.metrics_listen; 0: none
  virtual bool has_keys() const = 0;
  // Applies a reloaded configuration. Tenants, keys and limits change before this returns; models change later, on a
  // thread of the server. New models are loaded. Models that the configuration no longer lists, or whose file or
  // options have changed, are removed when their requests have ended. Models loaded by the API stay. If a model cannot
  // be loaded, the error is logged and the model that was loaded before stays.
  virtual Status reconfigure(const std::vector<ModelSpec>& models, const ServerOptions& options) = 0;
  // From now on the probes report "not ready". Requests are still accepted.
  virtual void leave() = 0;
  // Accepts no more requests and waits until all running requests have been answered. Returns false if some were not
  // answered in time.
  virtual bool drain(double timeout_s) = 0;
  // Returns whether the device fails every step. The process should then end, so that its supervisor restarts it.
  virtual bool is_failed() const = 0;
};

}  // namespace zinc_rt::server
