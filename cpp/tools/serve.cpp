// `zinc-rt serve`: serves the APIs over HTTP. `zinc-rt key`: makes an API key and prints its hash.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/platform/heap.h"
#include "base/print.h"
#include "hub/store.h"
#include "server/config.h"
#include "server/tenants/api_keys.h"
#include "server/tenants/tenants.h"
#include "tools/command.h"
#include "tools/ready.h"

namespace zinc_rt::tools {
namespace {

struct ServeOptions {
  ModelOptions model;
  std::string id, config, host, api_key, admin_key, state, tls_cert, tls_key;
  std::vector<std::string> cors_origins, model_dirs, served_names;
  std::string metrics_listen, page_engine;
  std::optional<double> shutdown_delay_s;
  int port = -1, ready_fd = -1;
  std::string access_log, log_format;
  bool example = false, allow_anonymous = false, tolerant = false, on_demand = false;
  std::optional<double> keep_alive_s;
  std::optional<std::uint32_t> max_loaded;
};

// Returns the models in the models folder.
std::vector<server::OfferedModel> offered() {
  std::vector<server::OfferedModel> models;
  for (auto& model : hub::Store().list()) {
    struct stat file{};
    const bool is_there = ::stat(model.path.c_str(), &file) == 0;
    models.push_back({.id = std::move(model.name),
                      .path = model.path.string(),
                      .aliases = std::move(model.aliases),
                      .bytes = model.bytes,
                      .created_s = is_there ? std::int64_t{file.st_mtim.tv_sec} : 0});
  }
  return models;
}

// Applies model options that were given on the command line without a model's name. The options override the
// configuration file for each model in it.
Status override_models(const ServeOptions& o, std::vector<server::ModelSpec>& models) {
  if (!o.id.empty() && models.size() > 1)
    return fail(StatusCode::kInvalidArgument,
                "[serve] --id {} is given, and {} has {} models: write the id into the [[models]] that it is for", o.id,
                o.config, models.size());
  for (auto& spec : models) {
    if (!o.id.empty()) spec.id = o.id;
    for (const auto& override_one : o.model.overrides) override_one(spec.options);
  }
  return {};
}

// Returns the settings of the file, overridden by the command line.
Result<server::Config> configuration(const ServeOptions& o) {
  server::Config config;
  if (!o.config.empty()) {
    auto loaded = server::load_config(o.config);
    if (!loaded) return loaded;
    config = std::move(*loaded);
  }
  auto& transport = config.options.transport;
  if (!o.host.empty()) transport.host = o.host;
  if (o.port >= 0) transport.port = static_cast<std::uint16_t>(o.port);
  if (!o.tls_cert.empty()) transport.tls_cert = o.tls_cert;
  if (!o.tls_key.empty()) transport.tls_key = o.tls_key;
  if (!o.state.empty())
    config.options.state_path = o.state;
  else if (config.options.state_path.empty())
    config.options.state_path = options::get("ZINC_RT_STATE");
  if (config.options.state_path.empty()) {
    const auto folder = options::state_folder();
    if (!folder.empty()) config.options.state_path = folder + "/state.db";
  }
  if (config.options.state_path == "none") config.options.state_path.clear();
  if (!o.model_dirs.empty()) config.options.model_dirs = o.model_dirs;
  if (!o.page_engine.empty()) config.options.page_engine = o.page_engine;
  if (!o.cors_origins.empty()) config.options.cors_origins = o.cors_origins;
  if (!o.model.model.empty()) {
    ZRT_TRY(const auto path, model_path(o.model.model));
    // If the model was given by its name in the models folder, this name is its id.
    const auto id = !o.id.empty() || path == o.model.model ? o.id : o.model.model;
    server::ModelSpec spec{path, id, o.served_names, o.model.engine};
    config.models.insert(config.models.begin(), std::move(spec));
  } else if (const auto done = override_models(o, config.models); !done) {
    return std::unexpected(done.error());
  }
  for (auto& spec : config.models) ZRT_CHECK_OK(find_draft_model(spec.options));
  if (!o.served_names.empty() && o.model.model.empty())
    return fail(StatusCode::kInvalidArgument,
                "[serve] --served-name {} is given without a MODEL: write served_names into the [[models]]",
                o.served_names.front());
  if (!std::ranges::all_of(o.served_names, server::is_good_model_id))
    return fail(StatusCode::kInvalidArgument,
                "[serve] --served-name: 1 to 256 bytes without control characters wanted");
  if (!o.metrics_listen.empty()) config.options.metrics_listen = o.metrics_listen;
  if (o.shutdown_delay_s) config.shutdown_delay_s = *o.shutdown_delay_s;
  const bool is_on_demand = o.on_demand || config.is_on_demand.value_or(config.models.empty());
  if (config.models.empty() && !is_on_demand)
    return fail(StatusCode::kInvalidArgument,
                "[serve] no model: name one, or [[models]] in --config, or leave out on_demand = false");
  if (config.models.empty() && !o.id.empty())
    return fail(StatusCode::kInvalidArgument,
                "[serve] --id {} is given without a MODEL; models of the models folder have their names", o.id);
  if (is_on_demand) {
    auto on_demand = config.on_demand;
    on_demand.offered = offered;
    if (o.keep_alive_s) on_demand.keep_alive_s = *o.keep_alive_s;
    if (o.max_loaded) on_demand.max_loaded = *o.max_loaded;
    on_demand.engine = o.model.engine;
    ZRT_CHECK_OK(find_draft_model(on_demand.engine));
    server::widen_queue(on_demand.engine);
    config.options.on_demand = std::move(on_demand);
  }
  for (const auto& model : config.models)
    if (!server::is_good_model_id(served_id(model)))
      return fail(StatusCode::kInvalidArgument,
                  "[serve] the name of a model has 1 to 256 bytes without control characters: give it one by --id");
  for (auto& model : config.models) server::widen_queue(model.options);
  const auto key = !o.api_key.empty() ? o.api_key : options::get("ZINC_RT_API_KEY");
  const auto admin_key = !o.admin_key.empty() ? o.admin_key : options::get("ZINC_RT_ADMIN_KEY");
  if (!key.empty()) {
    server::TenantRegistry::Configured tenant;
    tenant.name = "default";
    tenant.settings = server::TenantSettings::unlimited();
    tenant.key_hashes = {server::sha256_hex(key)};
    config.options.tenants.push_back(std::move(tenant));
  }
  if (!o.access_log.empty()) config.options.access_log = *server::access_log_of(o.access_log);
  config.options.is_tolerant = config.options.is_tolerant || o.tolerant;
  config.options.allow_anonymous = config.options.allow_anonymous || o.allow_anonymous;
  if (!admin_key.empty()) config.options.admin_key_hashes.push_back(server::sha256_hex(admin_key));
  return config;
}

// Reads the configuration file again and applies it. `running` is the configuration that the server runs with.
void reload(server::Server& server, const ServeOptions& o, server::Config& running) {
  const auto config = configuration(o);
  const auto done = config ? server.reconfigure(config->models, config->options) : std::unexpected(config.error());
  if (!done) {
    log().error("nothing was changed: {}", done.error().message);
    return;
  }
  running.drain_timeout_s = config->drain_timeout_s;
  running.shutdown_delay_s = config->shutdown_delay_s;
  log().info("the configuration was read again");
  for (const auto& key : server::kept_until_restart(running, *config))
    log().warn("{}: server.{} was changed, which only a restart takes over", o.config, key);
}

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

// Signal handler that passes a signal to the thread that waits for signals. Threads that existed before the server
// (such as numpy's in `python -m zinc_rt serve`) do not block signals. If such a thread receives a signal, this handler
// blocks signals in the thread from then on, and sends the signal to the process again.
void hand_back(int signal, siginfo_t*, void* context) {
  for (const int each : kSignals) sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, each);
  kill(getpid(), signal);
}

// Blocks the signals before any other thread exists, so that only the calling thread receives them.
sigset_t take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : kSignals) sigaddset(&signals, each);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction action{};
  action.sa_sigaction = hand_back;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_mask = signals;
  for (const int each : kSignals) sigaction(each, &action, nullptr);
  return signals;
}

// Returns an address such as "http://127.0.0.1:8080".
std::string address_text(const char* scheme, const std::string& host, int port) {
  const bool is_bare_v6 = host.contains(':') && !host.starts_with('[');
  return fmt::format("{}://{}:{}", scheme, is_bare_v6 ? "[" + host + "]" : host, port);
}

// Returns the API's address and, if configured, the address for probes and metrics.
std::vector<std::string> own_addresses(const server::Server& server, const server::ServerOptions& o) {
  const auto& transport = o.transport;
  std::vector<std::string> all{
      address_text(transport.tls_cert.empty() ? "http" : "https", transport.host, server.port())};
  if (const auto port = server.metrics_port(); port != 0)
    all.push_back(address_text("http", o.metrics_listen.substr(0, o.metrics_listen.rfind(':')), port));
  return all;
}

// Returns a text about the models, for the line that announces that the server is ready.
std::string what_is_served(const server::Config& config, const Engine& engine) {
  std::string text;
  if (!config.models.empty()) {
    text = fmt::format("{} on {}, arithmetic {}", served_id(config.models.front()), engine.tier(), engine.arithmetic());
  }
  if (config.options.on_demand) {
    const auto n = offered().size();
    text += fmt::format("{}the models of {} on demand ({} now{})", text.empty() ? "" : "; also ",
                        hub::default_folder().string(), n, n == 0 ? "; `zinc-rt pull NAME` fetches one" : "");
  }
  return text;
}

Result<int> serve(ServeOptions& o) {
  const auto signals = take_signals();
  signal(SIGPIPE, SIG_IGN);
  limit_waiting_of_messages();
  give_free_memory_back();
  // The variable must be set before any code reads it.
  if (!o.log_format.empty()) setenv("ZINC_RT_LOG_FORMAT", o.log_format.c_str(), 1);
  raise_descriptor_limit();
  if (o.ready_fd >= 0)
    if (const auto is_open = check_ready_fd(o.ready_fd); !is_open) return std::unexpected(is_open.error());
  auto config = configuration(o);
  if (!config) return std::unexpected(config.error());
  // Loading cannot be interrupted. No request has been served yet, so the process just ends.
  std::jthread quitter([](const std::stop_token& is_ready) {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&ends, signal);
    constexpr timespec kShort{0, 20'000'000};  // short, because the server's start waits for the last of these pauses
    while (!is_ready.stop_requested())
      if (sigtimedwait(&ends, nullptr, &kShort) > 0) _exit(kDone);
  });
  for (auto& model : config->models) model.options.on_progress = progress_bar("loading", o.model.progress);
  auto engine = Engine::start(config->models.empty() ? o.model.engine : config->models.front().options);
  if (!engine) return std::unexpected(engine.error());
  auto server = server::Server::start(*engine, config->models, config->options);
  if (!server) return std::unexpected(server.error());
  quitter.request_stop();
  quitter.join();
  const auto at = own_addresses(**server, config->options);
  print_announcement("{} serves {}; ledger: {}; {}\n", at.front(), what_is_served(*config, *engine),
                     config->options.state_path.empty() ? "in memory" : config->options.state_path,
                     (*server)->has_keys() ? "API keys wanted" : "no API keys");
  if (const auto port = (*server)->metrics_port(); port != 0)
    print_announcement("probes, /metrics and /load: port {}\n", port);
  if (o.ready_fd >= 0)
    if (const auto told = tell_ready(o.ready_fd, fmt::format("{}\n", fmt::join(at, " "))); !told)
      log().warn("{}", told.error().message);
  constexpr timespec kLook{0, 200'000'000};
  for (;;) {
    const int signal = sigtimedwait(&signals, nullptr, &kLook);
    if ((*server)->is_failed())
      return std::unexpected(Error{StatusCode::kInternal, "[serve] the device fails every step", 0});
    if (signal == SIGHUP) reload(**server, o, *config);
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (config->shutdown_delay_s > 0) {
      (*server)->leave();
      print_err("zinc-rt: requests are taken for {} s more, and /readyz says no\n", config->shutdown_delay_s);
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(config->shutdown_delay_s);
      while (std::chrono::steady_clock::now() < until)
        if (const int again = sigtimedwait(&signals, nullptr, &kLook); again == SIGTERM || again == SIGINT) break;
    }
    // Tells the user who pressed Ctrl-C why the server has not ended yet, whatever the log's level.
    print_err("zinc-rt: draining: answers under way may end, for at most {} s; a second signal ends at once\n",
              config->drain_timeout_s);
    std::atomic<bool> is_drained{false};
    std::thread drainer([&] {
      if (!(*server)->drain(config->drain_timeout_s)) log().warn("some requests had not ended, and are cut off");
      is_drained = true;
    });
    while (!is_drained) {
      const int again = sigtimedwait(&signals, nullptr, &kLook);
      if (again == SIGTERM || again == SIGINT) _exit(kDone);
    }
    drainer.join();
    if (const auto closed = (*server)->close(); !closed) return std::unexpected(closed.error());
    return kDone;
  }
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Accepts only keys of printable characters without spaces, and no empty key. In a shell an unset variable becomes an
// empty text, and an empty key would mean that no key is needed.
CLI::Validator is_key() {
  return CLI::Validator(
      [](const std::string& key) {
        const bool is_good =
            !key.empty() && std::ranges::all_of(key, [](unsigned char c) { return c > 0x20 && c < 0x7F; });
        return is_good ? std::string() : std::string("a key has 1 or more printable characters and no space");
      },
      "KEY");
}

void add_serve(CLI::App& app, int& exit) {
  auto o = std::make_shared<ServeOptions>();
  auto& command = *app.add_subcommand("serve", "the OpenAI API over HTTP, for many tenants");
  command.footer(
      "Without MODEL, and without [[models]] in --config, it serves the models folder (`zinc-rt models`): a model is\n"
      "loaded when a request names it.\n\n"
      "Example: zinc-rt serve model.gguf\n"
      "  zinc-rt serve model.gguf --host 0.0.0.0 --api-key \"$KEY\"\n"
      "  zinc-rt serve --example-config > zinc.toml; zinc-rt serve --config zinc.toml\n"
      "SIGTERM ends it when all requests have been answered, SIGHUP reads tenants, keys and models again. "
      "docs/server.md has "
      "the API.");
  add_model_options(command, o->model);
  command.get_option("MODEL")->required(false);
  command.add_option("--id", o->id, "the model's name for clients; else the file's");
  command.add_option("--served-name", o->served_names, "another name of MODEL for clients; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--config", o->config,
                  "a TOML file; what is given beside it goes before it: without MODEL, for each of its [[models]]")
      ->check(CLI::ExistingFile);
  command.add_option("--host", o->host, "address to listen on; 127.0.0.1 unless given");
  command.add_option("--port", o->port, "8080 unless given; 0: any that is free")->check(CLI::Range(0, 65535));
  command
      .add_option(
          "--ready-fd", o->ready_fd,
          "an open descriptor: once requests are taken, one line is written there and it is closed. The line has "
          "the address, as http://127.0.0.1:8080, and behind a space that of --metrics-listen")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--api-key", o->api_key, "the one key of the tenant \"default\" (or ZINC_RT_API_KEY)")
      ->check(is_key());
  command
      .add_option("--admin-key", o->admin_key,
                  "key for /v1/tenants, /metrics and loading models (or ZINC_RT_ADMIN_KEY)")
      ->check(is_key());
  command.add_flag(
      "--allow-anonymous", o->allow_anonymous,
      "without any key, listen on a --host that other machines reach, and answer to any Host: everyone is an "
      "admin");
  command.add_option("--state", o->state, "file of the usage ledger and of tenants made at run time; none: in memory");
  command.add_option("--metrics-listen", o->metrics_listen,
                     "another address, as 0.0.0.0:9090, for probes, /metrics and /load without a key");
  command
      .add_option("--shutdown-delay", o->shutdown_delay_s,
                  "seconds for which SIGTERM still lets requests in, while /readyz says 503; 0 unless given")
      ->check(CLI::Range(0.0, 86400.0));
  command.add_option("--tls-cert", o->tls_cert, "PEM file of the certificate chain");
  command.add_option("--tls-key", o->tls_key, "PEM file of its key");
  command
      .add_option("--cors-origin", o->cors_origins,
                  "a site whose pages may call this server, as https://chat.example; *: any; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--page-engine", o->page_engine,
                     "zinc_rt.wasm: /local is then a chat page that computes in the browser (docs/browser.md)");
  command
      .add_option("--models-dir", o->model_dirs,
                  "a folder that /v1/models/load may load from; may be repeated; else those of the models at the start")
      ->allow_extra_args(false);
  command.add_flag("--on-demand", o->on_demand,
                   "also serve the models folder: a model is loaded when a request names it; so it is without MODEL");
  command.add_option("--max-loaded", o->max_loaded, "so many models of the folder are loaded at once; 3 unless given")
      ->check(CLI::Range(1, 1024));
  command.add_option("--keep-alive", o->keep_alive_s,
                     "seconds after which an idle model of the folder is unloaded; 300 unless given; -1: never");
  command
      .add_option("--access-log", o->access_log,
                  "on, unless given: a line on stderr for each request but good health probes; all; off")
      ->check(CLI::IsMember({"on", "all", "off"}));
  command.add_option("--log-format", o->log_format, "text or json (or ZINC_RT_LOG_FORMAT)")
      ->check(CLI::IsMember({"text", "json"}));
  command.add_flag("--tolerant", o->tolerant,
                   "pass over unknown fields of generating requests, and name them in x-zinc-ignored-fields, instead "
                   "of refusing them");
  command.add_flag("--example-config", o->example, "print a configuration with every key");
  command.callback([o, &exit] {
    if (o->example) {
      print_out("{}", server::example_config());
      return;
    }
    const auto done = serve(*o);
    exit = done ? *done : report(done.error());
  });
}

void add_key(CLI::App& app, int& exit) {
  auto& command = *app.add_subcommand("key", "make an API key, and the hash of it that a configuration holds");
  command.footer("Example: zinc-rt key");
  command.callback([&exit] {
    const auto key = server::make_api_key();
    if (!key) {
      exit = report(key.error());
      return;
    }
    print_out("key   {}\nhash  sha256:{}\n", *key, server::sha256_hex(*key));
  });
}

}  // namespace zinc_rt::tools
