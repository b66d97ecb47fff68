// Reads the server's configuration file (TOML).
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
  OnDemandOptions on_demand;  // the caller of load_config() sets which models are offered
  std::optional<bool> is_on_demand;
  double drain_timeout_s = 30;
  // For how long, in seconds, the server still accepts requests after a signal to end.
  double shutdown_delay_s = 0;
  Json server_values = Json::object();  // the table [server] of the file
};

// Reads a file. Errors: kNotFound for a file that cannot be read; kInvalidArgument, with line and key, for an unknown
// key, a value of the wrong type, or a secret that is not hashed.
Result<Config> load_config(const std::string& path);

// Returns, for each table's heading such as "[server]", the keys of the table. The heading "" is the top of the file.
const std::map<std::string, std::set<std::string>>& config_keys();

// Returns the keys of [server] that differ between `file` and `running` but take effect only at a restart.
std::vector<std::string> kept_until_restart(const Config& running, const Config& file);

// Returns an example file with every key, for --example-config.
std::string example_config();

}  // namespace zinc_rt::server
