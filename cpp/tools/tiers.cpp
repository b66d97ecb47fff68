// `zinc-rt tiers`: prints what this machine has, which tier `auto` picks, and why. With --env it lists all environment
// variables.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/options.h"
#include "base/platform/gpus.h"
#include "base/print.h"
#include "base/processors.h"
#include "executor/registry.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

int print_env(bool json) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& variable : options::variables()) {
    const bool is_set = options::is_set(variable.name);
    const auto value = is_set && variable.is_secret ? std::string("(set)") : options::get(variable.name);
    if (!json)
      print_out("{:26} {:8} {}{}\n", variable.name, variable.fallback, variable.help,
                is_set ? fmt::format(" [now: {}]", value) : "");
    list.push_back(
        {{"name", variable.name}, {"default", variable.fallback}, {"help", variable.help}, {"value", value}});
  }
  if (json) print_out("{}\n", list.dump());
  return kDone;
}

int print_tiers(bool json) {
  const auto choice = pick_tier(options::get("ZINC_RT_TIER"), options::get("ZINC_RT_BACKEND"));
  auto list = nlohmann::ordered_json::array(), executors = nlohmann::ordered_json::array();
  for (const auto& [executor, tier] : executor_tiers()) {
    const auto reason = tier.unavailable_reason();
    if (!json)
      print_out("{:10} {:12} {:10} {}{}\n", tier.name, reason.empty() ? "available" : "absent", executor->name,
                tier.description, reason.empty() ? "" : ": " + reason);
    const auto details = reason.empty() && tier.details != nullptr ? tier.details() : std::string();
    if (!json && !details.empty()) print_out("{:10} {}\n", "", details);
    const std::uint32_t n_devices = !reason.empty() ? 0 : tier.n_devices != nullptr ? tier.n_devices() : 1;
    if (!json && n_devices > 1) print_out("{:10} {} devices, of which --devices takes some\n", "", n_devices);
    list.push_back({{"name", tier.name},
                    {"executor", executor->name},
                    {"available", reason.empty()},
                    {"reason", reason},
                    {"description", tier.description},
                    {"devices", n_devices},
                    {"details", details}});
  }
  for (const ExecutorKind* kind : executor_kinds()) {
    if (!json) print_out("executor {}: {}\n", kind->name, kind->description);
    executors.push_back({{"name", kind->name}, {"description", kind->description}});
  }
  if (!choice) return report(choice.error());
  const auto processors = find_processors();
  if (json) {
    auto threads = nlohmann::ordered_json{{"default", processors.n_threads()},
                                          {"processors", processors.ids.size()},
                                          {"cores", processors.n_cores},
                                          {"quota", nullptr}};
    if (processors.quota) threads["quota"] = *processors.quota;
    print_out("{}\n", nlohmann::ordered_json{{"tiers", list},
                                             {"executors", executors},
                                             {"chosen", choice->entry.tier.name},
                                             {"why", choice->why},
                                             {"rejected", choice->rejected},
                                             {"threads", threads}}
                          .dump());
    return kDone;
  }
  print_out("chosen: {} ({})\n", choice->entry.tier.name, choice->why);
  for (const auto& line : choice->rejected) print_out("  not {}\n", line);
  if (const auto advice = advice_on_gpus(gpu_makers(), choice->entry.tier.name); !advice.empty())
    print_out("{}\n", advice);
  print_out("t_cpu takes {}\n", processors.explain());
  return kDone;
}

}  // namespace

void add_tiers(CLI::App& app, int& exit) {
  struct Options {
    bool env = false, json = false;
  };
  auto o = std::make_shared<Options>();
  auto& command =
      *app.add_subcommand("tiers", "the hardware tiers of this build and machine, and the executors that run them");
  command.footer("Example: zinc-rt tiers --env");
  command.add_flag("--env", o->env, "list the environment variables instead");
  command.add_flag("--json", o->json, "as JSON");
  command.callback([o, &exit] { exit = o->env ? print_env(o->json) : print_tiers(o->json); });
}

}  // namespace zinc_rt::tools
