// The server's configuration file, TOML.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "server/server.h"

namespace zinc_rt::server {

struct Config {
  ServerOptions options;
  std::vector<ModelSpec> models;
  OnDemandOptions on_demand;  // who reads the configuration says which models are offered
  std::optional<bool> is_on_demand;
  double drain_timeout_s = 30;
  double shutdown_delay_s = 0;  // how long requests are still taken once the server is told to end
};

// Errors: kNotFound for a file that cannot be read; kInvalidArgument with line and key for a key that is not known, a
// value of the wrong type, or a secret that is not hashed.
Result<Config> load_config(const std::string& path);

// An example with every key, for --example-config.
extern const char* const kExampleConfig;

}  // namespace zinc_rt::server
