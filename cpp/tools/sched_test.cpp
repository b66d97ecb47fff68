// `zinc-rt sched-test`: runs the scheduler alone in a simulation and checks all its invariants.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/print.h"
#include "sched/sim/campaign.h"
#include "sched/sim/shrink.h"
#include "tools/command.h"
#include "tools/sched_loads.h"

namespace zinc_rt::tools {
namespace {

namespace sim = sched::sim;

struct SchedTestOptions {
  std::uint64_t steps = 1'000'000, seed = 1;
  std::string scenario, shrink_to;
  bool faults = false, shares = false, loads = false, json = false, progress = false;
};

Result<sim::Scenario> read_scenario(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))  // reading a folder or an empty file fails here
    return fail(StatusCode::kNotFound, "[sched-test] {}: no scenario can be read from it", path);
  return sim::parse_scenario(text.str());
}

// Shrinks the failing scenario and writes it to stdout or a file.
Status write_failure(const SchedTestOptions& o, const sim::Scenario& scenario, const std::string& rule) {
  const std::string text = sim::print_scenario(sim::shrink(scenario, rule));
  if (o.shrink_to.empty()) return print_out("{}", text), Status{};
  std::ofstream file(o.shrink_to);
  if (!(file << text)) return fail(StatusCode::kUnavailable, "[sched-test] {}: cannot be written", o.shrink_to);
  print_out("the scenario is in {}\n", o.shrink_to);
  return {};
}

void print_result(const SchedTestOptions& o, const sim::CampaignResult& result, double seconds) {
  const sim::SimCounts& counts = result.counts;
  nlohmann::ordered_json out{{"scenarios", result.n_scenarios},
                             {"steps", counts.steps},
                             {"seconds", seconds},
                             {"steps_per_s", static_cast<double>(counts.steps) / std::max(seconds, 1e-9)},
                             {"requests", counts.finished},
                             {"preemptions", counts.preemptions},
                             {"yields", counts.yields},
                             {"bound_used", result.bound_used},
                             {"evictions", counts.evictions},
                             {"cached_tokens", counts.cached_tokens},
                             {"draft_tokens", counts.draft_tokens},
                             {"accepted_draft_tokens", counts.accepted_draft_tokens},
                             {"steps_ahead", counts.steps_ahead},
                             {"dropped_rows", counts.dropped_rows},
                             {"faults", counts.faults}};
  out["violation"] = nullptr;
  if (result.violation)
    out["violation"] = {
        {"seed", result.failed_seed}, {"rule", result.violation->rule}, {"text", result.violation->text}};
  if (o.json) return print_out("{}\n", out.dump());
  for (const auto& [key, value] : out.items())
    if (key != "violation") print_out("{:14} {}\n", key, value.dump());
  if (result.violation) print_out("{}: {}\n", result.violation->rule, result.violation->text);
}

Result<int> sched_test(const SchedTestOptions& o) {
  if (o.loads) return print_loads(), kDone;
  const auto started = std::chrono::steady_clock::now();
  sim::CampaignResult result;
  sim::Scenario scenario;
  if (!o.scenario.empty()) {
    ZRT_TRY(scenario, read_scenario(o.scenario));
    sim::SimResult one = sim::simulate(scenario);
    result.counts = one.counts;
    result.n_scenarios = 1;
    result.bound_used = one.bound_used;
    result.violation = std::move(one.violation);
  } else {
    const sim::RandomOptions random{.with_faults = o.faults, .is_about_shares = o.shares};
    result = sim::run_campaign(
        {.seed = o.seed, .n_steps = o.steps, .random = random, .on_progress = progress_bar("simulating", o.progress)});
    if (result.violation) scenario = sim::random_scenario(result.failed_seed, random);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  print_result(o, result, seconds);
  if (!result.violation) return kDone;
  // With --json, stdout must hold nothing but the object. The seed in it reproduces the scenario.
  if (!o.json || !o.shrink_to.empty()) ZRT_CHECK_OK(write_failure(o, scenario, result.violation->rule));
  return kFailed;
}

}  // namespace

void add_sched_test(CLI::App& app, int& exit) {
  auto o = std::make_shared<SchedTestOptions>();
  auto& command = *app.add_subcommand("sched-test", "simulate the scheduler and check its invariants after every step");
  command.footer(
      "Examples:\n"
      "  zinc-rt sched-test --steps 10000000 --seed 1\n"
      "  zinc-rt sched-test --shares --steps 10000000\n"
      "  zinc-rt sched-test --faults --shrink-to failing.txt\n"
      "  zinc-rt sched-test --scenario tests_cpp/sched/scenarios/siblings.txt\n"
      "Exit codes: 0 all invariants hold, 1 one does not (the scenario is printed, shrunk), 2 bad usage, 3 the "
      "scenario\n"
      "file is refused.");
  auto* scenario = command.add_option("--scenario", o->scenario, "run this scenario file instead of random ones");
  command.add_option("--steps", o->steps, "simulated engine steps")
      ->check(whole_number())
      ->capture_default_str()
      ->excludes(scenario);
  command.add_option("--seed", o->seed, "of the first scenario")
      ->check(whole_number())
      ->capture_default_str()
      ->excludes(scenario);
  auto* faults =
      command.add_flag("--faults", o->faults, "device faults, missing pages, cancels, sinks that block and fail")
          ->excludes(scenario);
  command
      .add_flag(
          "--shares", o->shares,
          "instead: requests of any length, class and weight that wait for slots, and how much of the bound on that "
          "(docs/tenancy.md, Turns) was used at most")
      ->excludes(scenario)
      ->excludes(faults);
  command
      .add_flag("--loads", o->loads,
                "instead: what clients see of one GPU under some loads, by the gap that standard streams are promised")
      ->excludes(scenario);
  command.add_option("--shrink-to", o->shrink_to, "write the smallest failing scenario to this file");
  command.add_flag("--progress", o->progress, "show the progress bar even where stderr is no terminal");
  command.add_flag("--json", o->json, "the summary as one JSON object");
  command.callback([o, &exit] {
    const auto done = sched_test(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
