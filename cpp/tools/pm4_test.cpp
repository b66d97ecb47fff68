// `zinc-rt pm4-test`: tests, on the device, every kind of packet that the AMD tiers use.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/print.h"
#include "tools/device_checks.h"

namespace zinc_rt::tools {
namespace {

struct Pm4TestOptions {
  std::string tier;
  bool json = false, report = false;
};

Result<int> pm4_test(const Pm4TestOptions& o) {
  const auto tiers = tiers_with_diagnostics(o.tier);
  if (o.report) {
    print_out("{}\n", version_text());
    for (const ring::Tier* tier : ring::tiers()) {
      if (tier->diagnostics == nullptr) continue;
      const auto reason = tier->unavailable_reason();
      print_out("tier {}: {}\n", tier->name, reason.empty() ? "can run here" : reason);
    }
    if (tiers)
      for (const auto& line : tiers->front()->diagnostics->report()) print_out("{}\n", line);
  }
  if (!tiers) return std::unexpected(tiers.error());
  std::vector<ring::DeviceCheck> checks;
  for (const ring::Tier* tier : *tiers)
    for (auto& check : tier->diagnostics->check()) {
      check.way = tier->name + " " + check.way;
      checks.push_back(std::move(check));
    }
  return show_checks(checks, o.json) ? kDone : kFailed;
}

}  // namespace

void add_pm4_test(CLI::App& app, int& exit) {
  auto o = std::make_shared<Pm4TestOptions>();
  auto& command = *app.add_subcommand("pm4-test", "try every kind of packet on an AMD GPU, by each driver's queue");
  command.footer(
      "A tier of AMD GPUs fills queues of packets (PM4) itself. This tries each kind of packet by each way that there\n"
      "is: queues of /dev/kfd with PM4 (pm4) and with AQL packets (aql), AMDGPU_CS (cs), user queues (userq). A way "
      "that\n"
      "fails is one that a tier does not take. It needs no model and takes a second or two.\n"
      "Where something fails, send the output of `zinc-rt pm4-test --report`.\n"
      "Example: zinc-rt pm4-test --tier t2 --json\n"
      "One way: ZINC_RT_AMD_PATH=cs zinc-rt pm4-test --tier t1 --report > report.txt");
  command.add_option("--tier", o->tier, "t1 or t2; else both, where they can run");
  command.add_flag("--json", o->json, "the checks as JSON");
  command.add_flag("--report", o->report, "first versions of program, kernel, firmware and device");
  command.callback([o, &exit] {
    const auto done = pm4_test(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
