#include "server/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "server/config_table.h"

namespace zinc_rt::server {
namespace {

// The keys of [server] that take effect when the file is reloaded. The others need a restart.
const std::set<std::string> kReadAgain = {"tolerant",   "max_answer_bytes", "model_dirs",      "on_demand",
                                          "max_loaded", "keep_alive_s",     "drain_timeout_s", "shutdown_delay_s"};

void read_server(Table& t, const toml::node&, Config& config) {
  auto& o = config.options.transport;
  t.take("host", o.host);
  t.take("port", o.port);
  t.take("tls_cert", o.tls_cert);
  t.take("tls_key", o.tls_key);
  t.take_count("max_body_bytes", o.max_body_bytes);
  t.take_count("max_connections", o.max_connections);
  t.take_count("max_connections_per_address", o.max_connections_per_address);
  t.take_count("max_answer_bytes", config.options.max_answer_bytes);
  t.take_count("max_bodies_bytes", o.bodies.in_all);
  t.take_count("max_bodies_bytes_per_address", o.bodies.per_address);
  t.take_count("max_bodies_bytes_per_tenant", o.bodies.per_owner);
  for (auto* most : {&o.bodies.in_all, &o.bodies.per_address, &o.bodies.per_owner})
    // At least the size of the largest request, so that such a request always fits.
    *most = std::max(*most, o.max_body_bytes);
  t.take("tolerant", config.options.is_tolerant);
  if (std::string name = "on"; t.get("access_log") != nullptr) {
    t.take("access_log", name);
    if (const auto what = access_log_of(name))
      config.options.access_log = *what;
    else
      t.complain(*t.get("access_log"), "access_log", "on, all or off wanted");
  }
  t.take("allow_anonymous", config.options.allow_anonymous);
  t.take("state", config.options.state_path);
  t.take("metrics_listen", config.options.metrics_listen);
  t.take("metrics_tenants", config.options.metrics_tenants);
  t.take("drain_timeout_s", config.drain_timeout_s);
  t.take("shutdown_delay_s", config.shutdown_delay_s);
  constexpr double kMostDrain_s = 86400;
  if (!(config.drain_timeout_s >= 0 && config.drain_timeout_s <= kMostDrain_s))
    t.complain(*t.get("drain_timeout_s"), "drain_timeout_s",
               fmt::format("{} s, 0 to {} allowed", config.drain_timeout_s, kMostDrain_s));
  if (!(config.shutdown_delay_s >= 0 && config.shutdown_delay_s <= kMostDrain_s))
    t.complain(*t.get("shutdown_delay_s"), "shutdown_delay_s",
               fmt::format("{} s, 0 to {} allowed", config.shutdown_delay_s, kMostDrain_s));
  if (t.get("on_demand") != nullptr) t.take("on_demand", config.is_on_demand.emplace());
  t.take_count("max_loaded", config.on_demand.max_loaded);
  t.take("keep_alive_s", config.on_demand.keep_alive_s);
  t.take_strings("cors_origins", config.options.cors_origins);
  t.take("page_engine", config.options.page_engine);
  if (t.get("model_dirs") != nullptr) t.take_strings("model_dirs", config.options.model_dirs.emplace());
  config.server_values = t.to_json();
}

// Reads a table whose keys are names that the user chooses.
void read_objectives(Table& t, const toml::node& node, Config& config) {
  for (const auto& [name, value] : *node.as_table()) {
    const std::string key(name.str());
    auto& qos = config.options.objectives[key];
    t.take(key.c_str(), qos);
    if (qos != "interactive" && qos != "standard" && qos != "batch")
      t.complain(value, key, "interactive, standard or batch wanted");
  }
}

void read_model(Table& t, const toml::node& node, Config& config) {
  ModelSpec spec;
  auto& o = spec.options;
  t.take("path", spec.path);
  t.take("id", spec.id);
  t.take_strings("served_names", spec.aliases);
  for (const EngineOption& row : engine_options()) {
    if (row.audience == EngineOption::Audience::kEngine) continue;
    std::visit([&](auto member) { t.take(row.name, o.*member); }, row.member);
    if (const auto good = check(o, row); !good) t.complain(t.node_of(row.name, node), row.name, good.error().message);
  }
  if (spec.path.empty()) t.complain(node, "path", "it is missing");
  if (!spec.id.empty() && !is_good_model_id(spec.id))
    t.complain(t.node_of("id", node), "id", "1 to 256 bytes without control characters wanted");
  if (!std::ranges::all_of(spec.aliases, is_good_model_id))
    t.complain(t.node_of("served_names", node), "served_names", "1 to 256 bytes without control characters wanted");
  config.models.push_back(std::move(spec));
}

void read_tenant(Table& t, const toml::node& node, Config& config) {
  TenantRegistry::Configured tenant;
  t.take("name", tenant.name);
  t.take_hashes("keys", tenant.key_hashes);
  if (tenant.name.empty()) t.complain(node, "name", "it is missing");
  if (!is_good_tenant_name(tenant.name)) t.complain(t.node_of("name", node), "name", kGoodTenantName);
  for (const auto& other : config.options.tenants)
    if (other.name == tenant.name) t.complain(node, "name", "two tenants have it");
  std::set<std::string> keys;
  const Json settings = tenant.settings.to_json();
  for (const auto& [key, value] : settings.items()) keys.insert(key);
  if (const auto good = tenant.settings.change(t.take_json(keys)); !good)
    t.complain(t.node_of(good.error().param, node), good.error().param, good.error().message);
  config.options.tenants.push_back(std::move(tenant));
}

struct Section {
  const char *name, *heading;
  bool is_list;  // true if the file writes the table as [[name]], once per element of a list
  void (*read)(Table& t, const toml::node& node, Config& config);
};
constexpr Section kSections[] = {
    {"server", "[server]", false, read_server},
    {"objectives", "[objectives]", false, read_objectives},
    {"models", "[[models]]", true, read_model},
    {"tenants", "[[tenants]]", true, read_tenant},
};

void read_section(const Section& section, Table& root, Status& status, const KeysOfTables& all, Config& config) {
  const toml::node* node = root.get(section.name);
  if (node == nullptr) return;
  const std::string wanted = section.heading + std::string(" wanted");
  const auto read_one = [&](const toml::node& one) {
    if (!one.is_table()) return root.complain(one, section.name, wanted);
    Table table(*one.as_table(), section.heading, status, all);
    section.read(table, one, config);
  };
  if (!section.is_list) return read_one(*node);
  if (!node->is_array()) return root.complain(*node, section.name, wanted);
  for (const toml::node& one : *node->as_array()) read_one(one);
}

void read_file(const toml::table& file, Status& status, const KeysOfTables& all, Config& config, KeysOfTables* keys) {
  Table root(file, "", status, all);
  root.take_hashes("admin_keys", config.options.admin_key_hashes);
  for (const Section& section : kSections) read_section(section, root, status, all, config);
  if (keys != nullptr) (*keys)[""] = root.known();
}

// Returns the keys that the functions above read from each table.
KeysOfTables find_keys() {
  KeysOfTables keys;
  const toml::table nothing;
  const KeysOfTables none;
  Status ignored;
  Config config;
  read_file(nothing, ignored, none, config, &keys);
  for (const Section& section : kSections) {
    Table table(nothing, section.heading, ignored, none);
    section.read(table, nothing, config);
    keys[section.heading] = table.known();
  }
  return keys;
}

}  // namespace

const std::map<std::string, std::set<std::string>>& config_keys() {
  static const KeysOfTables keys = find_keys();
  return keys;
}

std::vector<std::string> kept_until_restart(const Config& running, const Config& file) {
  std::vector<std::string> kept;
  for (const auto& key : config_keys().at("[server]"))
    if (!kReadAgain.contains(key) && running.server_values.value(key, Json()) != file.server_values.value(key, Json()))
      kept.push_back(key);
  return kept;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(StatusCode::kNotFound, "[config] {}: it cannot be read", path);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto parsed = toml::parse(text, path);
  if (!parsed)
    return fail(StatusCode::kInvalidArgument, "[config] {}: line {}: {}", path, parsed.error().source().begin.line,
                parsed.error().description());
  Config config;
  Status status;
  read_file(parsed.table(), status, config_keys(), config, nullptr);
  if (!status) return fail(StatusCode::kInvalidArgument, "[config] {}: {}", path, status.error().message);
  return config;
}

}  // namespace zinc_rt::server
