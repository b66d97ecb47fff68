// `zinc-rt trace`: runs a small load of several tenants and records its steps for ui.perfetto.dev.
#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "ring/registry.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

struct TraceOptions {
  ModelOptions model;
  std::string packets;  // file for the packet log; empty: packets are not recorded
  std::string steps;    // file for the step log; empty: steps are not recorded
  std::string out = "trace.json", prompt = "Once upon a time, in a small village by the sea,";
  std::uint32_t tenants = 3, requests = 4, max_tokens = 32;
  bool logits = false, json = false;
};

// Classes of the tenants, in the order in which the tenants begin. The most urgent requests come last, when all slots
// are in use.
constexpr const char* kClasses[] = {"batch", "standard", "interactive"};

void show(const Tenant& tenant, bool json, nlohmann::ordered_json& rows) {
  const auto l = tenant.ledger();
  const auto qos = tenant.quota().qos_class;
  if (!json)
    print_out("{:12} {:12} {:8} {:8} {:9} {:12.1f} {:12.1f} {:14.1f}\n", tenant.name(), qos, l.requests_finished,
              l.tokens_generated, l.slots_preempted, l.p50_queue_ms, l.p50_ttft_ms, l.p99_decode_ms);
  rows.push_back({{"tenant", tenant.name()},
                  {"qos_class", qos},
                  {"requests_finished", l.requests_finished},
                  {"tokens_generated", l.tokens_generated},
                  {"slots_preempted", l.slots_preempted},
                  {"p50_queue_ms", l.p50_queue_ms},
                  {"p50_ttft_ms", l.p50_ttft_ms},
                  {"p99_decode_ms", l.p99_decode_ms}});
}

// Sets an environment variable that is read when the model is opened. No other thread runs yet.
Status set_variable(const char* name, const std::string& value) {
  if (!value.empty() && ::setenv(name, value.c_str(), 1) != 0)
    return fail(StatusCode::kExhausted, "no memory for the environment");
  return {};
}

Result<int> trace(TraceOptions& o) {
  if (o.logits && o.steps.empty())
    return fail(StatusCode::kInvalidArgument, "--logits is for --steps, which is not given");
  ZRT_CHECK_OK(set_variable("ZINC_RT_PACKET_LOG", o.packets));
  ZRT_CHECK_OK(set_variable("ZINC_RT_STEP_LOG", o.steps));
  ZRT_CHECK_OK(set_variable("ZINC_RT_STEP_LOG_LOGITS", o.logits ? "1" : ""));
  ZRT_TRY(auto engine, open_engine(o.model));
  const auto tier = ring::find_tier(engine.tier());
  if (!o.packets.empty() && (!tier || (*tier)->diagnostics == nullptr))
    return fail(StatusCode::kInvalidArgument, "--packets is for tiers t1 and t2; this engine runs on {}",
                engine.tier());
  ZRT_CHECK_OK(engine.start_trace());
  std::vector<Tenant> tenants;
  std::vector<Stream> streams;
  for (std::uint32_t t = 0; t < o.tenants; ++t) {
    TenantQuota quota;
    quota.qos_class = kClasses[t % std::size(kClasses)];
    ZRT_TRY(auto tenant, engine.tenant(fmt::format("tenant-{}", t + 1), quota));
    ZRT_TRY(const auto session, tenant.session());
    tenants.push_back(std::move(tenant));
    for (std::uint32_t i = 0; i < o.requests; ++i) {
      Request request;
      request.prompt = fmt::format("{}. {}", i + 1, o.prompt);
      request.max_tokens = o.max_tokens;
      request.ignore_eos = true;
      ZRT_TRY(auto stream, session.stream(request));
      streams.push_back(std::move(stream));
    }
  }
  for (auto& stream : streams)
    for (bool more = true; more;) {
      ZRT_TRY(const auto event, stream.next());
      more = event.has_value();
    }
  ZRT_CHECK_OK(engine.stop_trace(o.out));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!o.json)
    print_out("{:12} {:12} {:>8} {:>8} {:>9} {:>12} {:>12} {:>14}\n", "tenant", "class", "finished", "tokens",
              "preempted", "p50 queue ms", "p50 TTFT ms", "p99 decode ms");
  for (const auto& tenant : tenants) show(tenant, o.json, rows);
  if (o.json)
    print_out("{}\n", nlohmann::ordered_json{{"trace", o.out}, {"tenants", rows}}.dump());
  else
    print_out("{} written; open it in ui.perfetto.dev or chrome://tracing\n", o.out);
  engine.close();  // the log of steps gets its name
  if (!o.json && !o.steps.empty()) print_out("{} written; `zinc-rt replay {}` runs it again\n", o.steps, o.steps);
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, int& exit) {
  auto o = std::make_shared<TraceOptions>();
  auto& command = *app.add_subcommand("trace", "run requests of several tenants at once and record every step");
  command.footer(
      "Example: zinc-rt trace model.gguf --out trace.json --tenants 3 --requests 8 --max-slots 4\n"
      "With packets: zinc-rt trace model.gguf --tier t1 --packets steps.log --tenants 1 --requests 1 -n 2\n"
      "With steps: zinc-rt trace model.gguf --steps steps.log --logits; zinc-rt replay steps.log --tier t_cpu");
  add_model_options(command, o->model);
  command.add_option("-o,--out", o->out, "the trace to write")->capture_default_str();
  command.add_option("--packets", o->packets,
                     "also record each submission's packets and memory for zinc-rt replay; tiers t1 and t2, slow");
  command.add_option(
      "--steps", o->steps,
      "also record the inputs and picks of all steps for zinc-rt replay; only the owner may read the file, "
      "because it has the texts as token ids");
  command.add_flag("--logits", o->logits, "with --steps: hash the logits of every pick; slow on GPUs");
  command.add_option("--tenants", o->tenants, "by turns batch, standard and interactive")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--requests", o->requests, "of each tenant")->check(CLI::Range(1, 10000))->capture_default_str();
  command.add_option("-n,--max-tokens", o->max_tokens, "to generate a request")->capture_default_str();
  command.add_option("-p,--prompt", o->prompt, "of every request, after its number")->capture_default_str();
  command.add_flag("--json", o->json, "print one JSON object instead of a table");
  command.callback([o, &exit] {
    const auto done = trace(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
