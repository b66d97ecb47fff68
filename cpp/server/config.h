// The server's configuration file, TOML.
// Thread rule: pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/api/json_in.h"
#include "server/server.h"

namespace zinc_rt::server {

struct Config {
  ServerOptions options;
  std::vector<ModelSpec> models;
  OnDemandOptions on_demand;  // who reads the configuration says which models are offered
  std::optional<bool> is_on_demand;
  double drain_timeout_s = 30;
  double shutdown_delay_s = 0;          // how long requests are still taken once the server is told to end
  Json server_values = Json::object();  // [server] as the file has it
};

// Errors: kNotFound for a file that cannot be read; kInvalidArgument, with line and key, for an unknown key, a value of
// the wrong type, or a secret that is not hashed.
Result<Config> load_config(const std::string& path);

// The keys of each table, by its heading, as "[server]"; "" is the top of the file.
const std::map<std::string, std::set<std::string>>& config_keys();

// The keys of [server] that differ between `file` and `running` and take effect only at a restart.
std::vector<std::string> kept_until_restart(const Config& running, const Config& file);

// An example with every key, for --example-config.
std::string example_config();

}  // namespace zinc_rt::server
