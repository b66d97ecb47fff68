#include "server/config.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"

namespace zinc_rt::server {

const char* const kExampleConfig = R"(# zinc-rt serve --config FILE; SIGHUP reads tenants, keys and models again.

# Keys are kept as hashes: `zinc-rt key` makes a key and prints both.
admin_keys = ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]

[server]
host = "127.0.0.1"
port = 8080
# tls_cert = "/etc/zinc_rt/cert.pem"
# tls_key = "/etc/zinc_rt/key.pem"
state = "/var/lib/zinc_rt/state.db"  # the ledger, and tenants made at run time
drain_timeout_s = 30
shutdown_delay_s = 0                 # from SIGTERM on /readyz says 503, and requests are still taken for so long
# metrics_listen = "0.0.0.0:9090"     # probes, /metrics and /load without a key, in plain HTTP
metrics_tenants = false               # /metrics there has the names of tenants, too
max_body_bytes = 16777216
max_answer_bytes = 67108864           # about so much may one answer with logprobs or echo take
max_connections = 16384
max_connections_per_address = 8192
max_bodies_bytes = 268435456             # of requests under way, in all
max_bodies_bytes_per_address = 134217728
max_bodies_bytes_per_tenant = 117440512
allow_anonymous = false              # without any key, listen on a host that other machines reach
# model_dirs = ["/models"]           # where POST /v1/models/load may load from; else the folders of [[models]]
access_log = "on"                    # a line on stderr for each request but good health probes; all; off
tolerant = false                     # unknown fields of generating requests are passed over, and named in a header
cors_origins = []                    # sites whose pages may call it, as "https://chat.example"; "*": any
# on_demand = false                  # also serve the models folder: a model is loaded when a request names it
max_loaded = 3                       # so many models of the folder at once
keep_alive_s = 300.0                 # a model of the folder that is idle for longer is unloaded; -1: never

[[models]]
path = "/models/smollm2-135m-instruct.gguf"
id = "smollm2"
# served_names = ["default"]         # other names of the model
# max_context = 8192
# devices = [0, 1]                # a replica of the model on each (docs/devices.md)
# max_slots = 64                  # of each device
# kv_pages = 0
# kv_dtype = "i16"
# pooling = "last"                # mean, last, cls: it embeds; rank: it scores pairs; none: it generates
# tools = "hermes"                # for a model whose template shows no tools
# threads = 0

[objectives]                         # classes by the names in a proxy's x-gateway-inference-objective
chat = "interactive"
nightly = "batch"

[[tenants]]
name = "team-a"
keys = ["sha256:0000000000000000000000000000000000000000000000000000000000000001"]
qos_class = "interactive"      # interactive, standard or batch
weight = 1.0
max_concurrent_slots = 4
max_kv_pages = 4096
reserved_kv_pages = 0
max_context_tokens = 128000
decode_tokens_per_s = 1000.0
prefill_tokens_per_s = 100000.0
isolation_group = ""           # tenants of one group share cached prefixes
requests_per_minute = 0.0      # 0: no limit
tokens_per_minute = 0.0
max_open_requests = 4096       # choices: prompts times n
may_store = false              # keep its answers of /v1/responses for a day (previous_response_id)
proxy = false                  # its x-gateway-inference-fairness-id is believed
)";

namespace {

constexpr std::string_view kHashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// A table whose keys are read one by one; a key that is left over is an error.
class Table {
 public:
  Table(const toml::table& table, std::string at, Status& status)
      : table_(table), at_(std::move(at)), status_(status) {}
  ~Table() {
    for (const auto& [key, value] : table_)
      if (!known_.contains(std::string(key.str()))) complain(value, std::string(key.str()), "no such key is known");
  }
  template <class T>
  void take(const char* key, T& out) {
    const toml::node* node = get(key);
    if (node == nullptr) return;
    using Wide = std::conditional_t<std::is_same_v<T, bool> || std::is_same_v<T, std::string>, T,
                                    std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>>;
    const auto value = node->value<Wide>();
    bool fits = value.has_value();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) fits = fits && std::in_range<T>(*value);
    if (!fits) return complain(*node, key, "its value is of the wrong kind, or out of range");
    out = static_cast<T>(*value);
  }
  // With 0 of these, no request could be served.
  template <class T>
  void take_count(const char* key, T& out) {
    take(key, out);
    if (out == 0) complain(*get(key), key, "0 is given, at least 1 wanted");
  }
  const toml::node* get(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }
  void complain(const toml::node& node, const std::string& key, const std::string& what) {
    if (!status_) return;
    status_ = fail(StatusCode::kInvalidArgument, "line {}: {}{}: {}", node.source().begin.line, at_, key, what);
  }
  // The keys that were not read so far, as a body of the API would have them.
  Json take_rest() {
    Json out = Json::object();
    for (const auto& [name, value] : table_) {
      const std::string key(name.str());
      if (!known_.insert(key).second) continue;
      if (value.is_boolean())
        out[key] = *value.value<bool>();
      else if (value.is_integer())
        out[key] = *value.value<std::int64_t>();
      else if (value.is_floating_point())
        out[key] = *value.value<double>();
      else if (value.is_string())
        out[key] = *value.value<std::string>();
      else
        complain(value, key, "its value is of the wrong kind");
    }
    return out;
  }
  const toml::node& node_of(const std::string& key, const toml::node& otherwise) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? otherwise : *node;
  }
  // A list of strings. `refuse` returns what is wanted instead of a string that it does not accept, else nothing.
  template <class Refuse>
  void take_strings(const char* key, std::vector<std::string>& out, const Refuse& refuse) {
    const toml::node* node = get(key);
    if (node == nullptr) return;
    const auto* list = node->as_array();
    if (list == nullptr) return complain(*node, key, "a list wanted");
    for (const toml::node& one : *list) {
      const auto text = one.value<std::string>();
      const std::string_view wanted = one.is_string() ? refuse(*text) : "a string wanted";
      if (!wanted.empty()) return complain(one, key, std::string(wanted));
      out.push_back(*text);
    }
  }
  void take_strings(const char* key, std::vector<std::string>& out) {
    take_strings(key, out, [](std::string_view) { return std::string_view(); });
  }
  // What is wrong with their list as a whole the engine says when it loads the model.
  void take_devices(const char* key, std::vector<std::uint32_t>& out) {
    const toml::node* node = get(key);
    if (node == nullptr) return;
    const auto* list = node->as_array();
    if (list == nullptr) return complain(*node, key, "a list wanted, as [0, 1]");
    out.clear();
    for (const toml::node& one : *list) {
      const auto number = one.value<std::int64_t>();
      if (!one.is_integer() || !std::in_range<std::uint32_t>(*number))
        return complain(one, key, "the number of a device wanted, from 0 on");
      out.push_back(static_cast<std::uint32_t>(*number));
    }
  }
  // Each is "sha256:" and 64 hex digits.
  void take_hashes(const char* key, std::vector<std::string>& out) {
    const std::size_t first = out.size();
    take_strings(key, out, [](std::string_view text) {
      const bool is_hash = text.size() == 71 && text.starts_with("sha256:") &&
                           text.find_first_not_of("0123456789abcdef", 7) == std::string_view::npos;
      if (!is_hash)
        return std::string_view("\"sha256:\" and 64 hex digits wanted; `zinc-rt key` makes a key and its hash");
      return text.substr(7) == kHashOfNothing ? std::string_view("this is the hash of an empty key")
                                              : std::string_view();
    });
    for (std::size_t i = first; i < out.size(); ++i) out[i].erase(0, 7);
  }

 private:
  const toml::table& table_;
  const std::string at_;
  Status& status_;
  std::set<std::string> known_;
};

template <class Each>
void for_tables(Table& parent, const char* key, Status& status, Each each) {
  const toml::node* node = parent.get(key);
  if (node == nullptr) return;
  const auto* list = node->as_array();
  if (list == nullptr) return parent.complain(*node, key, "[[" + std::string(key) + "]] wanted");
  for (const toml::node& one : *list) {
    if (!one.is_table()) return parent.complain(one, key, "[[" + std::string(key) + "]] wanted");
    Table table(*one.as_table(), std::string(key) + ".", status);
    each(table, one);
  }
}

void read_server(Table& t, Config& config) {
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
    *most = std::max(*most, o.max_body_bytes);  // a single request of the largest size is always accepted
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
  if (t.get("model_dirs") != nullptr) t.take_strings("model_dirs", config.options.model_dirs.emplace());
}

void read_objectives(Table& t, const toml::table& names, Config& config) {
  for (const auto& [name, value] : names) {
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
  t.take_devices("devices", o.devices);
  t.take("max_context", o.max_context);
  t.take("max_slots", o.max_slots);
  t.take("kv_pages", o.kv_pages);
  t.take("kv_dtype", o.kv_dtype);
  t.take("pooling", o.pooling);
  t.take("threads", o.threads);
  t.take("tier", o.tier);
  t.take("backend", o.backend);
  t.take("arithmetic", o.arithmetic);
  t.take("tools", o.tools);
  t.take("chunk_cap", o.chunk_cap);
  t.take("standard_gap_ms", o.standard_gap_ms);
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
  if (const auto good = tenant.settings.change(t.take_rest()); !good)
    t.complain(t.node_of(good.error().param, node), good.error().param, good.error().message);
  config.options.tenants.push_back(std::move(tenant));
}

}  // namespace

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
  {
    Table root(parsed.table(), "", status);
    root.take_hashes("admin_keys", config.options.admin_key_hashes);
    if (const toml::node* node = root.get("server"); node != nullptr) {
      if (node->is_table()) {
        Table table(*node->as_table(), "server.", status);
        read_server(table, config);
      } else {
        root.complain(*node, "server", "[server] wanted");
      }
    }
    if (const toml::node* node = root.get("objectives"); node != nullptr) {
      if (node->is_table()) {
        Table table(*node->as_table(), "objectives.", status);
        read_objectives(table, *node->as_table(), config);
      } else {
        root.complain(*node, "objectives", "[objectives] wanted");
      }
    }
    for_tables(root, "models", status, [&](Table& t, const toml::node& node) { read_model(t, node, config); });
    for_tables(root, "tenants", status, [&](Table& t, const toml::node& node) { read_tenant(t, node, config); });
  }
  if (!status) return fail(StatusCode::kInvalidArgument, "[config] {}: {}", path, status.error().message);
  return config;
}

}  // namespace zinc_rt::server
