#include "tools/sched_loads.h"

#include <fmt/format.h>

#include "base/print.h"
#include "sched/sim/load.h"

namespace zinc_rt::tools {

namespace sim = sched::sim;

void print_loads() {
  // The costs of an H100 with a model of 8 billion 4-bit weights. Long chunks run at 20,000 tokens per second, short
  // ones much slower.
  constexpr sim::Machine kMachine{.base_us = 4000, .decode_us = 10, .prompt_us = 7000, .prompt_token_us = 45};
  constexpr sched::Micros kGaps[] = {10'000, 30'000, 60'000, 120'000};
  const sim::Load loads[] = {
      {.name = "short: 64 clients, prompts and answers of 32 to 256", .n_clients = 64, .n_requests = 1024},
      {.name = "long: 64 prompts of 1,000 at once, answers of 64",
       .n_clients = 64,
       .n_requests = 64,
       .prompt = {1000, 1000},
       .output = {64, 64}},
      {.name = "long, beside one interactive stream",
       .n_clients = 64,
       .n_requests = 64,
       .prompt = {1000, 1000},
       .output = {64, 64},
       .with_interactive = true},
  };
  sim::Load open{.name = "", .n_requests = 1500, .rate = 1, .prompt = {200, 800}, .output = {64, 192}};
  sched::Options options;
  options.max_context = 4096;
  options.n_pages = 65 * options.max_context / kPageTokens;
  options.n_slots = 65;
  options.chunk_cap = 2048;
  print_out("{} us a step, {} a stream, {} with prompts, {} a prompt token; 65 slots\n\n", kMachine.base_us,
            kMachine.decode_us, kMachine.prompt_us, kMachine.prompt_token_us);
  print_out(
      "| load | gap | tokens/s | in all | first token p50, p99 | gap p50, p99 | interactive gap p99 |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const sim::Load& load : loads)
    for (const sched::Micros gap : kGaps) {
      options.standard_gap = gap;
      const auto r = sim::run_load(load, kMachine, options);
      print_out("| {} | {} ms | {:.0f} | {:.1f} s | {:.0f}, {:.0f} ms | {:.1f}, {:.1f} ms | {} |\n", load.name,
                gap / 1000, r.generated_per_s, r.seconds, r.first_p50_ms, r.first_p99_ms, r.gap_p50_ms, r.gap_p99_ms,
                load.with_interactive ? fmt::format("{:.1f} ms", r.interactive_gap_p99_ms) : "");
    }
  print_out(
      "\n| requests of 200 to 800 + 64 to 192 tokens, of which 99 % have their first token within {:.0f} ms | gap | a "
      "second |\n"
      "|---|---|---|\n",
      sim::kFirstMs);
  for (const bool with_interactive : {false, true})
    for (const sched::Micros gap : kGaps) {
      open.with_interactive = with_interactive;
      options.standard_gap = gap;
      print_out("| {} | {} ms | {:.0f} |\n",
                with_interactive ? fmt::format("beside an interactive stream with a p99 gap of {:.0f} ms at most",
                                               sim::kInteractiveGapMs)
                                 : "alone",
                gap / 1000, sim::goodput(open, kMachine, options, 0.99));
    }
}

}  // namespace zinc_rt::tools
