// `zinc-rt replay`: runs a log of a ring's packets again, on a new ring.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/print.h"
#include "ring/amd/packet_log.h"
#include "tools/device_checks.h"

namespace zinc_rt::tools {
namespace {

struct ReplayOptions {
  std::string log, tier;
  bool json = false, text = false;
};

Result<int> replay(const ReplayOptions& o) {
  ZRT_TRY(const auto file, MappedFile::open(o.log));
  if (o.text) {
    ZRT_TRY(const auto records, ring::read_packet_log(file.bytes()));
    ZRT_TRY(const auto texts, ring::packet_log_text(records));
    for (std::size_t i = 0; i < texts.size(); ++i) print_out("submission {}:\n{}", i + 1, texts[i]);
    return kDone;
  }
  ZRT_TRY(const auto tiers, tiers_with_diagnostics(o.tier));
  ZRT_TRY(const auto checks, tiers.front()->diagnostics->replay(file.bytes()));
  ZRT_CHECK_OK(file.is_whole());
  const bool is_right = show_checks(checks, o.json);
  if (!o.json)
    print_out("{} submissions, {}\n", checks.size(),
              is_right ? "memory equal bit for bit after each" : "not all equal");
  return is_right ? kDone : kFailed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit) {
  auto o = std::make_shared<ReplayOptions>();
  auto& command = *app.add_subcommand("replay", "run recorded packets on a fresh ring and compare memory bit for bit");
  command.footer(
      "A log has what the tiers of AMD GPUs gave their device: memory before each submission, the packets, and what\n"
      "memory held afterwards. It is written by `zinc-rt trace --packets`, or by any command with ZINC_RT_PACKET_LOG\n"
      "set. It can be replayed on another card, by another driver's queue, or in the tests' emulator. A log runs as "
      "it\n"
      "is: take it from people whom you trust.\n"
      "Example: zinc-rt replay steps.log\n"
      "By one way: ZINC_RT_AMD_PATH=cs zinc-rt replay steps.log --tier t1\n"
      "To read: zinc-rt replay steps.log --text | less");
  command.add_option("LOG", o->log, "the log")->required();
  command.add_option("--tier", o->tier, "t1 or t2; else the first that can run here");
  command.add_flag("--text", o->text, "only print the packets, a line each; needs no device");
  command.add_flag("--json", o->json, "a JSON array, an object a submission");
  command.callback([o, &exit] {
    const auto done = replay(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
