#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/config.h"
#include "zinc_rt/engine_options.h"

namespace zinc_rt::server {
namespace {

constexpr const char* kBegin = R"(# zinc-rt serve --config FILE; SIGHUP reads tenants, keys and models again.

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
# page_engine = "/srv/zinc_rt.wasm"  # /local is a page that computes in the browser, with this engine (docs/browser.md)
# on_demand = false                  # also serve the models folder: a model is loaded when a request names it
max_loaded = 3                       # so many models of the folder at once
keep_alive_s = 300.0                 # a model of the folder that is idle for longer is unloaded; -1: never

[[models]]
path = "/models/smollm2-135m-instruct.gguf"
id = "smollm2"
# served_names = ["default"]         # other names of the model
)";
constexpr const char* kEnd =
    R"([objectives]                         # classes by the names in a proxy's x-gateway-inference-objective
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
speculate = ""                 # auto, off or 1 to 32 guessed tokens a step; "": as the model
requests_per_minute = 0.0      # 0: no limit
tokens_per_minute = 0.0
max_open_requests = 4096       # choices: prompts times n
may_store = false              # keep its answers of /v1/responses for a day (previous_response_id)
proxy = false                  # its x-gateway-inference-fairness-id is believed
)";

std::string in_toml(bool value, const EngineOption&) {
  return value ? "true" : "false";
}
std::string in_toml(std::uint32_t value, const EngineOption&) {
  return fmt::to_string(value);
}
std::string in_toml(const std::vector<std::uint32_t>& value, const EngineOption&) {
  return fmt::format("[{}]", fmt::join(value, ", "));
}
// Returns an option's value as TOML. If the engine chooses the default, `value` is empty, and the example shows the
// usual choice or one of the choices.
std::string in_toml(const std::string& value, const EngineOption& row) {
  if (!value.empty()) return fmt::format("\"{}\"", value);
  const std::string_view usual = row.otherwise;
  for (const auto& choice : row.choices)
    if (usual.starts_with(choice)) return fmt::format("\"{}\"", choice);
  return fmt::format("\"{}\"", row.choices.empty() ? usual : row.choices.front());
}

}  // namespace

std::string example_config() {
  std::string text = kBegin;
  const EngineOptions options;
  for (const EngineOption& row : engine_options())
    if (row.audience != EngineOption::Audience::kEngine)
      text +=
          fmt::format("# {:<36} # {}\n",
                      fmt::format("{} = {}", row.name,
                                  std::visit([&](auto member) { return in_toml(options.*member, row); }, row.member)),
                      row.help);
  return text + '\n' + kEnd;
}

}  // namespace zinc_rt::server
