// The server: OpenAI's API over HTTP in front of one engine.
// Thread rule: any thread; start() and the destructor once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/models.h"
#include "server/tenants.h"
#include "server/transport/transport.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

struct ServerOptions {
  TransportOptions transport;
  std::string state_path;  // StateStore::open
  std::vector<TenantRegistry::Configured> tenants;
  std::vector<std::string> admin_key_hashes;
  bool allow_anonymous = false;  // without any key, listen where other machines reach it
  // Folders from which the API may load models; absent: those of the models at the start. None: it may not.
  std::optional<std::vector<std::string>> model_dirs;
  std::uint64_t max_answer_bytes = 64 << 20;  // about so many may one answer take
  // Sites whose pages may call this server from a browser, as "https://chat.example"; "*": any.
  std::vector<std::string> cors_origins;
};

class Server {
 public:
  // `models`: the first is the one that the engine has loaded; the others are loaded now. Errors: those of Transport,
  // StateStore and the engine.
  static Result<std::unique_ptr<Server>> start(Engine engine, const std::vector<ModelSpec>& models,
                                               const ServerOptions& options);
  virtual ~Server() = default;  // as close()
  // Ends what is under way. Errors: of StateStore::close(). Later calls do nothing.
  virtual Status close() = 0;

  virtual std::uint16_t port() const = 0;
  virtual bool has_keys() const = 0;
  // A configuration that was read again: tenants, keys and limits at once; models soon, on a thread of the server's.
  // Those that are new are loaded, those that are gone or whose file or options have changed end when their requests
  // have. Models that were loaded by the API stay. What goes wrong with a model is logged, and the former one stays.
  virtual Status reconfigure(const std::vector<ModelSpec>& models, const ServerOptions& options) = 0;
  // Takes no more requests, and waits until those that there are have been answered. False: not all by then.
  virtual bool drain(double timeout_s) = 0;
  // The device fails every step: the process should end, so that its supervisor starts it anew.
  virtual bool is_failed() const = 0;
};

}  // namespace zinc_rt::server
