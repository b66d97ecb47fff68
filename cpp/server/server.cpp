#include "server/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "base/read_number.h"
#include "server/api/error_forms.h"
#include "server/core.h"
#include "server/foreign_pages.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {

bool ServerCore::is_hung() const {
  return steady_ms() - last_alive_ms.load() > kHungMs;
}

std::string ServerCore::why_not_ready() const {
  if (is_failed) return "the device fails every step";
  if (is_draining) return "the server is shutting down";
  if (is_hung()) return fmt::format("the engine's step has not ended for {} ms", steady_ms() - last_alive_ms.load());
  if (const auto trouble = store->trouble(); !trouble.empty()) return "the ledger cannot be written: " + trouble;
  return {};
}

Status ServerCore::close() {
  is_closing = true;
  batches.close();
  engine.close();  // ends running requests; the work queues then complete their answers
  for (auto* queue : {&slow, &probes, &work, &ends, &transfers}) queue->stop();
  return store->close();  // after the ledger's last row, and the answers that wait for it
}

std::string new_id() {
  std::array<unsigned char, 12> bytes{};
  for (std::size_t n = 0; n < bytes.size();) {
    const auto got = ::getrandom(bytes.data() + n, bytes.size() - n, 0);
    if (got > 0) n += static_cast<std::size_t>(got);  // otherwise a signal interrupted the call
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

void answer(ServerCore& core, Exchange& exchange, std::string body, int status) {
  core.metrics.answered(status);
  HttpResponse response;
  response.status = status;
  response.content_type = kJson;
  response.body = std::move(body);
  response.headers.emplace_back("x-request-id", exchange.id);
  exchange.connection->respond(std::move(response));
}

void answer(ServerCore& core, Exchange& exchange, const ApiError& error) {
  exchange.connection->note("error", error.message);
  exchange.connection->respond(refusal(core, exchange.request.path, exchange.id, error));
}

void answer_with(ServerCore& core, Exchange& exchange, ApiResult<std::string> result, int status) {
  if (result)
    answer(core, exchange, std::move(*result), status);
  else
    answer(core, exchange, result.error());
}

HttpResponse refusal(ServerCore& core, const std::string& path, const std::string& request_id, const ApiError& error) {
  auto response = error_form_of(path)(error);
  core.metrics.answered(response.status);
  response.headers.emplace_back("x-request-id", request_id);
  return response;
}

std::string owner_of(const Exchange& exchange) {
  return exchange.caller.tenant ? exchange.caller.tenant->name : "";
}

void post_to_handler(ServerCore& core, const Route& route, const std::shared_ptr<Exchange>& exchange) {
  exchange->connection->on_gone([gone = exchange->gone]() mutable { gone.request_stop(); });
  core.work.post(owner_of(*exchange), [&core, &route, exchange] {
    if (exchange->gone.stop_requested()) return;
    // The body is counted before it is parsed, because parsing may take many times its size. Forms are not parsed.
    ByteBudget::Hold parsing;
    if (route.max_form_bytes == 0)
      if (const auto held =
              hold_parsed(core, *exchange, parsing, bytes_as_parsed(exchange->request.body), "[request] the body");
          !held)
        return answer(core, *exchange, held.error());
    route.handle(*exchange);
  });
}

ApiResult<void> hold_parsed(ServerCore& core, const Exchange& exchange, ByteBudget::Hold& held, std::uint64_t n_bytes,
                            const char* what) {
  const auto& most = core.parsed->limits();
  const auto refused = [&](int status, const std::string& why) {
    auto error = make_error(status, fmt::format("{} takes {} bytes as it is parsed, {}", what, n_bytes, why));
    if (status == 429) error.code = "rate_limit_exceeded";
    if (status != 400) error.retry_after_s = 1;
    return std::unexpected(std::move(error));
  };
  if (n_bytes > most.per_owner) return refused(400, fmt::format("{} allowed: send a shorter one", most.per_owner));
  if (held.size() == 0) held = ByteBudget::Hold(core.parsed, "", owner_of(exchange));
  switch (held.resize(n_bytes)) {
    case ByteBudget::Full::kNo: return {};
    case ByteBudget::Full::kOwner:
      return refused(429,
                     fmt::format("and {} are allowed to all that this key's tenant has under way", most.per_owner));
    default:
      return refused(503,
                     fmt::format("all that is under way has {}, {} allowed in all", core.parsed->held(), most.in_all));
  }
}

void find_model(ServerCore& core, Exchange& exchange, const std::string& name,
                std::function<void(Exchange&, const ApiResult<ServedModel>&)> then) {
  const auto& caller = exchange.caller;
  OnDemand::Asker asker{owner_of(exchange), exchange.gone.get_token(), caller.is_admin ? nullptr : caller.tenant,
                        exchange.is_of_batch};
  core.on_demand.find(name, std::move(asker),
                      [held = std::make_shared<Exchange>(std::move(exchange)),
                       then = std::move(then)](const ApiResult<ServedModel>& model) { then(*held, model); });
}

namespace {

// Returns the folders from which the API may load models.
Result<ModelFolders::Paths> model_folders(const std::vector<ModelSpec>& models, const ServerOptions& options) {
  if (options.model_dirs) return ModelFolders::find(*options.model_dirs);
  std::vector<std::string> paths;
  for (const auto& model : models) paths.push_back(model.path);
  return ModelFolders::find(folders_of(paths));
}

// Returns the client's request id if it is safe in headers and logs, else a new id.
std::string id_of(const HttpRequest& request) {
  const auto given = request.header("x-request-id");
  const bool is_good = !given.empty() && given.size() <= 128 && std::ranges::all_of(given, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  return is_good ? std::string(given) : new_id();
}

class ServerImpl final : public Server {
 public:
  ServerImpl(Engine engine, std::unique_ptr<StateStore> store) : core_(std::move(engine), std::move(store), kVersion) {
    add_health_routes(router_, core_);
    add_generation_routes(router_, core_);
    add_messages_routes(router_, core_);
    add_responses_routes(router_, core_);
    add_ollama_routes(router_, core_);
    add_embedding_routes(router_, core_);
    add_rerank_routes(router_, core_);
    add_stream_routes(router_, core_);
    add_file_routes(router_, core_);
    add_batch_routes(router_, core_);
    add_model_routes(router_, core_);
    add_prefix_routes(router_, core_);
    add_tenant_routes(router_, core_);
    add_ui_routes(router_, core_);
  }

  ~ServerImpl() override {
    if (const auto closed = close(); !closed) log().error("{}", closed.error().message);
  }

  Status close() override {
    core_.is_draining = true;
    {
      const std::lock_guard lock(watch_mutex_);
      is_stopped_ = true;
    }
    watch_wake_.notify_all();
    if (watch_.joinable()) watch_.join();
    auto closed = core_.close();
    if (core_.transport) core_.transport->drain(1);
    core_.transport.reset();
    core_.status_transport.reset();
    return closed;
  }

  Status start(const std::vector<ModelSpec>& models, const ServerOptions& options) {
    core_.max_answer_bytes = options.max_answer_bytes;
    core_.max_body_bytes = options.transport.max_body_bytes;
    const auto of_tenant = std::max(ServerCore::kMostParsedOfTenant, 12 * options.transport.max_body_bytes);
    core_.parsed = std::make_shared<ByteBudget>(
        ByteBudget::Limits{std::max(ServerCore::kMostParsed, of_tenant), SIZE_MAX, of_tenant});
    core_.is_tolerant = options.is_tolerant;
    cors_origins_ = options.cors_origins;
    if (!options.page_engine.empty()) ZRT_CHECK_OK(add_local_page_routes(router_, core_, options.page_engine));
    ZRT_TRY(auto folders, model_folders(models, options));
    core_.model_folders.set(std::move(folders));
    if (is_loopback(options.transport.host) && !options.allow_anonymous) site_.listens_on = options.transport.host;
    site_.has_tls = !options.transport.tls_cert.empty();
    core_.on_demand.set(options.on_demand);
    ZRT_CHECK_OK(core_.files.open(options.state_path.empty() ? "" : options.state_path + ".files"));
    for (const auto& model : models) ZRT_CHECK_OK(core_.models.load_at_start(model));
    core_.tenants.set_objectives(options.objectives);
    ZRT_CHECK_OK(core_.tenants.configure(options.tenants, options.admin_key_hashes));
    auto transport = options.transport;
    transport.refusal = refusal_of_transport;
    access_log_ = std::make_unique<AccessLog>(options.access_log);
    transport.on_answered = [this](const AnsweredRequest& request) { access_log_->write(request); };
    if (core_.tenants.is_open_to_all() && !options.allow_anonymous)
      transport.why_loopback_only =
          "and without keys everyone there would be an admin: give --api-key and --admin-key, or keys in --config; or "
          "say --allow-anonymous";
    ZRT_CHECK_OK(core_.batches.start(router_));  // before a client can add a batch
    core_.last_alive_ms = steady_ms();           // loading may have taken longer than kHungMs
    ZRT_TRY(core_.transport,
            Transport::listen(transport, [this](const HttpRequest& request) { return judge(request); }));
    ZRT_CHECK_OK(listen_for_status(options));
    watch_ = std::thread([this] {
      name_thread("zrt-watch");
      watch();
    });
    return {};
  }

  std::uint16_t port() const override { return core_.transport->port(); }
  std::uint16_t metrics_port() const override {
    return core_.status_transport ? core_.status_transport->port() : std::uint16_t{0};
  }
  void leave() override { core_.is_leaving = true; }
  bool has_keys() const override { return !core_.tenants.is_open_to_all(); }
  Status reconfigure(const std::vector<ModelSpec>& models, const ServerOptions& options) override {
    ZRT_TRY(auto folders, model_folders(models, options));  // found first, so that an error changes nothing
    ZRT_CHECK_OK(core_.tenants.configure(options.tenants, options.admin_key_hashes));
    core_.tenants.set_objectives(options.objectives);
    core_.model_folders.set(std::move(folders));
    core_.max_answer_bytes = options.max_answer_bytes;
    core_.is_tolerant = options.is_tolerant;
    core_.on_demand.set(options.on_demand);
    core_.slow.post([this, models] { core_.models.reconfigure(models); });
    return {};
  }
  bool is_failed() const override { return core_.is_failed; }

  bool drain(double timeout_s) override {
    core_.is_draining = true;
    const auto start = steady_ms();
    const auto left_s = [&] { return timeout_s - 1e-3 * static_cast<double>(steady_ms() - start); };
    // Calls for embeddings may still submit inputs, which a draining engine would refuse. So the server first waits for
    // these calls.
    while (core_.n_embedding > 0 && left_s() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const bool has_ended = core_.engine.drain(1e3 * std::max(0.0, left_s()));
    // The results of finished batch lines still have to be written.
    while (core_.batches.n_under_way() > 0 && left_s() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double left = left_s();
    return core_.transport->drain(std::max(0.5, left)) && has_ended;
  }

 private:
  // Decides by a request's head whether the request is handled or refused. The head has the key and the path, so the
  // body of a refused request is never read. It runs on an I/O thread.
  HeadVerdict judge(const HttpRequest& request) {
    auto exchange = std::make_shared<Exchange>();
    exchange->id = id_of(request);
    const auto origin = request.header("origin");
    const bool is_allowed = !origin.empty() && allows(origin);
    Headers for_browser;
    if (is_allowed)
      for_browser = {
          {"Access-Control-Allow-Origin", std::string(origin)},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers", "x-request-id, retry-after, x-should-retry, x-zinc-ignored-fields"}};
    HeadVerdict verdict;
    verdict.notes = {{"request_id", exchange->id}};
    if (is_allowed && request.method == "OPTIONS") {
      verdict.answer = preflight(request);
    } else if (const auto route = route_for(request, is_allowed, *exchange); !route) {
      verdict.answer = refusal(core_, request.path, exchange->id, route.error());
      verdict.notes.emplace_back("error", route.error().message);
    } else {
      if (exchange->caller.tenant) verdict.owner = exchange->caller.tenant->name;
      if (!verdict.owner.empty()) verdict.notes.emplace_back("tenant", verdict.owner);
      verdict.owner_words = "this key's tenant";
      verdict.max_body_bytes = (*route)->max_form_bytes;
      verdict.handle = [this, exchange, route = *route, for_browser](HttpRequest whole,
                                                                     std::shared_ptr<Connection> to) {
        for (const auto& [name, value] : for_browser) to->add_header(name, value);
        exchange->request = std::move(whole);
        exchange->connection = std::move(to);
        handle(*route, exchange);
      };
      return verdict;
    }
    verdict.answer->headers.insert(verdict.answer->headers.end(), for_browser.begin(), for_browser.end());
    return verdict;
  }

  // Starts the second listener, for probes and metrics. REQUIRES: the main transport exists, because /metrics shows the
  // main transport's counts.
  Status listen_for_status(const ServerOptions& options) {
    if (options.metrics_listen.empty()) return {};
    const auto colon = options.metrics_listen.rfind(':');
    const auto digits = colon == std::string::npos ? "" : options.metrics_listen.substr(colon + 1);
    TransportOptions transport;
    if (!read_number(digits, transport.port))
      return fail(StatusCode::kInvalidArgument, "[serve] metrics_listen \"{}\": host:port wanted, as 0.0.0.0:9090",
                  options.metrics_listen);
    transport.host = options.metrics_listen.substr(0, colon);
    if (transport.host.starts_with('[') && transport.host.ends_with(']'))
      transport.host = transport.host.substr(1, transport.host.size() - 2);
    transport.refusal = refusal_of_transport;
    status_site_.is_open = true;
    if (is_loopback(transport.host) && !options.allow_anonymous) status_site_.listens_on = transport.host;
    add_status_routes(status_router_, core_, options.metrics_tenants);
    ZRT_TRY(core_.status_transport,
            Transport::listen(transport, [this](const HttpRequest& request) { return judge_status(request); }));
    return {};
  }

  HeadVerdict judge_status(const HttpRequest& request) {
    auto exchange = std::make_shared<Exchange>();
    exchange->id = id_of(request);
    HeadVerdict verdict;
    const auto route = [&]() -> ApiResult<const Route*> {
      if (auto breach = breach_of(request, status_site_, false); !breach.empty())
        return std::unexpected(make_error(403, std::move(breach)));
      return status_router_.find(request, exchange->params);
    }();
    if (!route) {
      verdict.answer = refusal(core_, request.path, exchange->id, route.error());
      return verdict;
    }
    verdict.handle = [this, exchange, route = *route](HttpRequest whole, std::shared_ptr<Connection> to) {
      exchange->request = std::move(whole);
      exchange->connection = std::move(to);
      handle(*route, exchange);
    };
    return verdict;
  }

  // Finds the route, and sets the caller and the path's parameters in `exchange`. It returns every error that can be
  // found without the body.
  ApiResult<const Route*> route_for(const HttpRequest& request, bool is_allowed_origin, Exchange& exchange) {
    auto site = site_;
    site.is_open = core_.tenants.is_open_to_all();
    if (auto breach = breach_of(request, site, is_allowed_origin); !breach.empty())
      return std::unexpected(make_error(403, std::move(breach)));
    ZRT_TRY(const Route* route, router_.find(request, exchange.params));
    if (auto wrong = wrong_type_of(request, *route); !wrong.empty())
      return std::unexpected(make_error(415, std::move(wrong)));
    if (route->access == Access::kOpen) return route;
    ZRT_TRY(exchange.caller, core_.tenants.authenticate(request));
    if (route->access == Access::kKey || exchange.caller.is_admin) return route;
    return std::unexpected(make_error(403, "[keys] this path is for admins, and the key is of a tenant"));
  }

  void handle(const Route& route, const std::shared_ptr<Exchange>& exchange) {
    try {
      if (route.is_quick) return route.handle(*exchange);
    } catch (const std::exception& error) {  // the connection then answers 500
      log().error("a request ended by an exception: {}", error.what());
      return;
    }
    post_to_handler(core_, route, exchange);
  }

  bool allows(std::string_view origin) const {
    return std::ranges::any_of(cors_origins_, [&](const auto& one) { return one == "*" || one == origin; });
  }

  // Returns the answer to a CORS preflight, the request by which a browser finds out whether a page of another site may
  // send a request.
  HttpResponse preflight(const HttpRequest& request) {
    core_.metrics.answered(204);
    auto wanted = request.header("access-control-request-headers");  // clients send many other headers
    if (wanted.empty()) wanted = "authorization, content-type, x-request-id, traceparent, last-event-id";
    HttpResponse response;
    response.status = 204;
    response.headers = {{"Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE, OPTIONS"},
                        {"Access-Control-Allow-Headers", std::string(wanted)},
                        {"Access-Control-Max-Age", "600"}};
    return response;
  }

  // Runs on the watch thread. Checks that the engine's steps end, and without errors.
  void watch() {
    constexpr std::uint64_t kMostFailures = 3;
    std::unique_lock lock(watch_mutex_);
    while (!watch_wake_.wait_for(lock, std::chrono::milliseconds(ServerCore::kWatchMs), [&] { return is_stopped_; })) {
      lock.unlock();
      const auto stats = core_.engine.stats();
      core_.last_alive_ms = steady_ms() - static_cast<std::int64_t>(stats.step_ms);
      core_.on_demand.look(stats);
      core_.streams.sweep(std::chrono::steady_clock::now());
      core_.batches.look();
      for (const auto& model : stats.models) {
        core_.models.note_bad_logits(model.name, model.bad_logits);
        for (const auto& device : model.devices)
          if (device.stats.failed_steps_in_a_row >= kMostFailures && !core_.is_failed.exchange(true))
            log().error("model {}: {} steps in a row failed on device {}; the server is of no use any more", model.name,
                        device.stats.failed_steps_in_a_row, device.index);
      }
      core_.n_steps = stats.total.steps;
      lock.lock();
    }
  }

  std::unique_ptr<AccessLog> access_log_;  // outlives the transport, which writes to it
  ServerCore core_;
  Router router_, status_router_;
  std::mutex watch_mutex_;
  std::condition_variable watch_wake_;
  bool is_stopped_ = false;
  OwnSite site_, status_site_;  // OwnSite::listens_on is set only if the server listens on a loopback address
  std::vector<std::string> cors_origins_;
  std::thread watch_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(Engine engine, const std::vector<ModelSpec>& models,
                                              const ServerOptions& options) {
  ZRT_TRY(auto store, StateStore::open(options.state_path));
  auto server = std::make_unique<ServerImpl>(std::move(engine), std::move(store));
  ZRT_CHECK_OK(server->start(models, options));
  return server;
}

}  // namespace zinc_rt::server
