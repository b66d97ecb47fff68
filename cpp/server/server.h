// The server: OpenAI's API over HTTP in front of one engine.
// Thread rule: any thread; start() and the destructor once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/models.h"
#include "server/tenants.h"
#include "server/transport.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

struct ServerOptions {
  TransportOptions transport;
  std::string state_path;  // StateStore::open
  std::vector<TenantRegistry::Configured> tenants;
  std::vector<std::string> admin_key_hashes;
};

class Server {
 public:
  // `models`: the first is the one that the engine has loaded; the others are loaded now. Errors: those of Transport,
  // StateStore and the engine.
  static Result<std::unique_ptr<Server>> start(Engine engine, const std::vector<ModelSpec>& models,
                                               const ServerOptions& options);
  virtual ~Server() = default;  // ends what is under way

  virtual std::uint16_t port() const = 0;
  virtual bool has_keys() const = 0;
  // Tenants, keys and limits of a configuration that was read again.
  virtual Status reconfigure(const std::vector<TenantRegistry::Configured>& tenants,
                             const std::vector<std::string>& admin_key_hashes) = 0;
  // Takes no more requests, and waits until those that there are have been answered. False: not all by then.
  virtual bool drain(double timeout_s) = 0;
  // The device fails every step: the process should end, so that its supervisor starts it anew.
  virtual bool is_failed() const = 0;
};

}  // namespace zinc_rt::server
