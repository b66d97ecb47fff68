// Handles /livez, /readyz, /health, /health_generate, /version, /metrics, /load, /is_sleeping, and traces of the
// engine's steps.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "server/core.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

constexpr double kProbeMs = 2000;
// A probe waits this long, in ms, before it counts steps. After this time, all steps that ended before the probe began
// have been counted.
constexpr double kFirstMs = 1.5 * ServerCore::kWatchMs;

// Takes one token that the engine generates for a probe. The probe ends within kProbeMs, whatever the engine does.
class Probe final : public Sink {
 public:
  SinkResult push(const StreamEvent&) override { return SinkResult::kTaken; }
  void end(std::uint32_t) override {}
};

// Returns what is wrong with the engine. Returns an empty text if a token came, or if none came but steps go on;
// `n_steps` is then the number of these steps.
std::string probe(ServerCore& core, std::uint64_t& n_steps) {
  if (core.engine.models().empty()) return {};         // models are loaded on demand, and no request needs one now
  const auto tenant = core.engine.tenant("(health)");  // no real tenant can have this name
  const auto session = tenant ? tenant->session() : std::unexpected(tenant.error());
  if (!session) return session.error().message;
  Request request;
  request.token_ids = std::vector<std::int32_t>{0};
  request.max_tokens = 1;
  request.ignore_eos = true;
  auto handle = session->submit(request, std::make_shared<Probe>());
  if (!handle) return handle.error().message;
  if (!handle->wait_for(kFirstMs)) {
    const auto before = core.n_steps.load();
    if (!handle->wait_for(kProbeMs - kFirstMs)) {
      handle->cancel();
      n_steps = core.n_steps.load() - before;
      if (n_steps > 0) return {};  // all slots were busy
      return fmt::format("[health] no token within {:.0f} ms, and no step has ended meanwhile", kProbeMs);
    }
  }
  const auto status = handle->wait();
  return status ? std::string() : status.error().message;
}

// A probe takes seconds, and any client may request one. So all requests that arrive while a probe runs get the result
// of this probe.
class SharedProbe {
 public:
  void ask(ServerCore& core, Exchange exchange) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(exchange));
    if (waiting_.size() == 1) core.probes.post([this, &core] { run(core); });
  }

 private:
  void run(ServerCore& core) {
    const auto start = steady_ms();
    std::uint64_t n_steps = 0;
    const auto wrong = probe(core, n_steps);
    const auto took = steady_ms() - start;
    std::vector<Exchange> asked;
    {
      const std::lock_guard lock(mutex_);
      asked.swap(waiting_);
    }
    const auto text =
        !wrong.empty() ? fmt::format(R"({{"status":"failing","reason":{},"waited_ms":{}}})", json_string(wrong), took)
        : n_steps > 0  ? fmt::format(R"({{"status":"ok","busy":true,"steps":{}}})", n_steps)
                       : fmt::format(R"({{"status":"ok","token_ms":{}}})", took);
    for (auto& exchange : asked) answer(core, exchange, text, wrong.empty() ? 200 : 503);
  }

  std::mutex mutex_;
  std::vector<Exchange> waiting_;  // the callers that wait for the running probe
};

// Returns a JSON that names models whose weights seem broken. Such a server still counts as ready. The server's other
// models may work. A prompt that makes one model overflow must not take the server out of service.
std::string ready_json(ServerCore& core) {
  std::string ids;
  for (const auto& id : core.models.with_bad_logits()) ids += (ids.empty() ? "" : ",") + json_string(id);
  return ids.empty() ? R"({"status":"ok"})" : fmt::format(R"({{"status":"ok","models_with_bad_logits":[{}]}})", ids);
}

// Maps the engine's names of models to the ids that clients use.
std::map<std::string, std::string> ids_of(ServerCore& core) {
  std::map<std::string, std::string> ids;
  for (const auto& model : core.models.list()) ids[model.engine_name] = model.id;
  return ids;
}

// Returns the metrics as text. If no step ends, these are the last figures and their age.
std::string scrape(ServerCore& core, bool shows_tenants) {
  const double age_s = 1e-3 * static_cast<double>(steady_ms() - core.last_alive_ms);
  constexpr double kOld = 5;
  if (age_s > kOld) return core.metrics.scrape(core.transport->counts(), age_s, shows_tenants);
  std::vector<Metrics::TenantNow> tenants;
  for (const auto& entry : core.tenants.list())
    tenants.push_back({entry->name, entry->settings().quota.qos_class, entry->tenant.ledger()});
  core.metrics.update(core.engine.stats(), ids_of(core), tenants);
  return core.metrics.scrape(core.transport->counts(), age_s, shows_tenants);
}

// Returns the load at the end of the last step. server_load is vLLM's name for it.
ApiResult<std::string> load_now(ServerCore& core, const Exchange&) {
  const auto stats = core.engine.stats();
  const auto of = [](const ModelStats& m) {
    return Json{{"running", m.running},       {"waiting", m.waiting}, {"backlog_tokens", m.backlog_tokens},
                {"free_pages", m.pages_free}, {"pages", m.pages},     {"slots", m.slots}};
  };
  const auto with_devices = [&](const ModelStats& m) {
    auto out = of(m);
    for (const auto& device : m.devices) {
      auto part = of(device.stats);
      part["device"] = device.index;
      out["devices"].push_back(std::move(part));
    }
    return out;
  };
  const auto ids = ids_of(core);
  Json models = Json::object();
  for (const auto& model : stats.models)
    if (const auto id = ids.find(model.name); id != ids.end()) models[id->second] = with_devices(model);
  auto out = of(stats.total);
  out["server_load"] = stats.total.running + stats.total.waiting;
  out["models"] = std::move(models);
  return as_text(out);
}

void add_load_and_metrics(Router& router, ServerCore& core, Access access, bool shows_tenants) {
  router.add({"GET", "/metrics", access, false, [&core, shows_tenants](Exchange& exchange) {
                HttpResponse response;
                response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                response.body = scrape(core, shows_tenants);
                core.metrics.answered(200);
                exchange.connection->respond(std::move(response));
              }});
  router.add({"GET", "/load", access, false, answering(core, load_now)});
}

ApiResult<std::string> start_trace(ServerCore& core, const Exchange& exchange) {
  std::uint32_t n_records = 1u << 18;
  if (!exchange.request.body.empty()) {
    ZRT_TRY(const auto body, read_object(exchange.request));
    Fields fields(body);
    ZRT_TRY(const auto n, fields.get_int("n_records", 1, 1 << 24));
    if (n) n_records = static_cast<std::uint32_t>(*n);
    ZRT_CHECK_OK(fields.expect_no_others());
  }
  if (const auto status = core.engine.start_trace(n_records); !status)
    return std::unexpected(to_api_error(status.error()));
  return fmt::format(R"({{"tracing":true,"n_records":{}}})", n_records);
}

// Stops the trace and answers with the trace itself, a file for ui.perfetto.dev.
ApiResult<std::string> stop_trace(ServerCore& core, const Exchange& exchange) {
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  char path[] = "/tmp/zinc_rt_trace_XXXXXX";
  const int fd = ::mkstemp(path);
  if (fd < 0) return std::unexpected(make_error(500, "[trace] no temporary file could be made"));
  ::close(fd);
  const auto status = core.engine.stop_trace(path);
  std::string text;
  if (status) {
    std::ifstream in(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  ::unlink(path);
  if (!status) return std::unexpected(to_api_error(status.error()));
  return text;
}

void add_probes(Router& router, ServerCore& core) {
  router.add({"GET", "/livez", Access::kOpen, true,
              [&core](Exchange& exchange) { answer(core, exchange, R"({"status":"ok"})"); }});
  const auto ready = [&core](Exchange& exchange) {
    const auto why = core.is_leaving ? "the server is about to shut down" : core.why_not_ready();
    if (why.empty())
      answer(core, exchange, ready_json(core));
    else
      answer(core, exchange, fmt::format(R"({{"status":"unavailable","reason":{}}})", json_string(why)), 503);
  };
  router.add({"GET", "/readyz", Access::kOpen, true, ready});
  router.add({"GET", "/health", Access::kOpen, true, ready});
  router.add({"GET", "/v1/health", Access::kOpen, true, ready});  // llama.cpp's name of /health
  router.add({"GET", "/ping", Access::kOpen, true, ready});
}

}  // namespace

void add_status_routes(Router& router, ServerCore& core, bool shows_tenants) {
  add_probes(router, core);
  add_load_and_metrics(router, core, Access::kOpen, shows_tenants);
}

void add_health_routes(Router& router, ServerCore& core) {
  add_probes(router, core);
  router.add({"GET", "/health_generate", Access::kOpen, true,
              [&core, shared = std::make_shared<SharedProbe>()](Exchange& exchange) {
                shared->ask(core, std::move(exchange));
              }});
  router.add({"GET", "/version", Access::kOpen, true, [&core](Exchange& exchange) {
                const auto or_null = [](const std::string& text) { return text.empty() ? "null" : json_string(text); };
                answer(core, exchange,
                       fmt::format(R"({{"version":"{}","tier":{},"arithmetic":{}}})", kVersion,
                                   or_null(core.engine.tier()), or_null(core.engine.arithmetic())));
              }});
  // Routers request this path of vLLM. This server never sleeps.
  router.add({"GET", "/is_sleeping", Access::kOpen, true,
              [&core](Exchange& exchange) { answer(core, exchange, R"({"is_sleeping":false})"); }});
  add_load_and_metrics(router, core, Access::kAdmin, true);
  router.add({"POST", "/v1/trace/start", Access::kAdmin, false, answering(core, start_trace)});
  router.add({"POST", "/v1/trace/stop", Access::kAdmin, false, answering(core, stop_trace)});
}

}  // namespace zinc_rt::server
