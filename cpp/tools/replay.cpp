// `zinc-rt replay`: runs a log again and compares: a log of steps on any tier, or a log of a ring's packets on a new ring.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/print.h"
#include "executor/registry.h"
#include "executor/step_log_text.h"
#include "executor/step_replay.h"
#include "ring/amd/packet_log.h"
#include "tools/device_checks.h"

namespace zinc_rt::tools {
namespace {

struct ReplayOptions {
  std::string log, tier, model;
  std::uint32_t device = 0;
  int threads = 0;
  bool json = false, text = false, progress = false;
};

Result<int> replay_packets(const ReplayOptions& o, const MappedFile& file) {
  if (!o.model.empty())
    return fail(StatusCode::kInvalidArgument, "--model is for logs of steps; {} has packets", o.log);
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

void show(const StepReplay& replay, const StepLog& log, const Executor& executor, bool json) {
  const std::string first = replay.first ? to_string(*replay.first) : std::string();
  if (json) {
    print_out("{}\n", nlohmann::ordered_json{{"steps", replay.n_steps},
                                             {"tokens", replay.n_tokens},
                                             {"picks", replay.n_picks},
                                             {"hashes", replay.n_hashes},
                                             {"further_rows", replay.n_further_rows},
                                             {"without_results", replay.n_without_results},
                                             {"cut_bytes", log.n_cut_bytes},
                                             {"differences", replay.n_differences},
                                             {"first_difference", first},
                                             {"recorded_on", log.header.tier},
                                             {"tier", executor.info().tier}}
                          .dump());
    return;
  }
  if (log.n_cut_bytes > 0) print_out("{} bytes of an incomplete record at the end are left out\n", log.n_cut_bytes);
  if (replay.n_without_results > 0)
    print_out("{} steps have no results in the log, because they failed or the log ends there\n",
              replay.n_without_results);
  print_out("{} steps, {} tokens; {} picks and {} hashes compared; recorded on {}, played on {}: {}\n", replay.n_steps,
            replay.n_tokens, replay.n_picks, replay.n_hashes, log.header.tier, executor.info().tier,
            replay.n_differences == 0 ? "all equal" : fmt::format("{} differ, first {}", replay.n_differences, first));
}

Result<int> replay_step_log(const ReplayOptions& o, const MappedFile& file) {
  ZRT_TRY(const StepLog log, read_step_log(file.bytes()));
  if (o.text) {
    const auto status = describe_step_log(log, [](std::string_view line) { print_out("{}\n", line); });
    ZRT_CHECK_OK(status);
    ZRT_CHECK_OK(file.is_whole());
    return kDone;
  }
  ZRT_TRY(auto options, replay_options(log.header));
  options.tier = o.tier.empty() ? "auto" : o.tier;
  options.device = o.device;
  options.threads = o.threads;
  options.on_progress = progress_bar("loading", o.progress);
  ZRT_TRY(const auto model, model_path(o.model.empty() ? log.header.model : o.model));
  ZRT_TRY(const auto executor, open_executor(model, options));
  ZRT_CHECK_OK(check_replay(log.header, *executor));
  ZRT_TRY(const auto replay, replay_steps(log, *executor, progress_bar("playing", o.progress)));
  ZRT_CHECK_OK(file.is_whole());
  show(replay, log, *executor, o.json);
  return replay.n_differences == 0 ? kDone : kFailed;
}

Result<int> replay(const ReplayOptions& o) {
  ZRT_TRY(const auto file, MappedFile::open(o.log));
  if (is_step_log(file.bytes())) return replay_step_log(o, file);
  if (ring::is_packet_log(file.bytes())) return replay_packets(o, file);
  return fail(StatusCode::kCorrupt, "[replay] {} is neither a log of steps nor one of packets: it has {} bytes", o.log,
              file.bytes().size());
}

}  // namespace

void add_replay(CLI::App& app, int& exit) {
  auto o = std::make_shared<ReplayOptions>();
  auto& command = *app.add_subcommand("replay", "run recorded steps or packets again and compare the results");
  command.footer(
      "A log of steps has what the engine asked of a model in each step, the tokens that were picked, and hashes of\n"
      "logits. It is written by `zinc-rt trace --steps`, or by any command with ZINC_RT_STEP_LOG set. It is played on\n"
      "any tier, and the first step, row and quantity that differ are printed; the exit status is then 1.\n"
      "A log of packets has what the tiers of AMD GPUs gave their device: memory before each submission, the packets,\n"
      "and what memory held afterwards. It is written by `zinc-rt trace --packets`, or by any command with\n"
      "ZINC_RT_PACKET_LOG set. It can be replayed on another card, by another driver's queue, or in the tests'\n"
      "emulator. A log of packets runs as it is: take it from people whom you trust.\n"
      "Example: zinc-rt replay steps.log --tier t_cpu\n"
      "By one way: ZINC_RT_AMD_PATH=cs zinc-rt replay packets.log --tier t1\n"
      "To read: zinc-rt replay steps.log --text | less");
  command.add_option("LOG", o->log, "the log")->required();
  command.add_option("--tier", o->tier, "the tier to play on; else the first that can run here");
  command.add_option("-m,--model", o->model, "of a log of steps: the model, if it is no longer where the log says");
  command.add_option("--device", o->device, "of a log of steps: the device's number within the tier");
  command.add_option("-t,--threads", o->threads, "of a log of steps: threads of T-CPU; 0: what the process may use")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--text", o->text, "only print the steps or packets, a line each; needs no device");
  command.add_flag("--json", o->json, "of steps a JSON object; of packets an array with an object a submission");
  command.add_flag("--progress", o->progress, "show progress even where stderr is no terminal");
  command.callback([o, &exit] {
    const auto done = replay(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
