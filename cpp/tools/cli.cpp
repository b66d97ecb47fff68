#include "tools/cli.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/command.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {

int report(const Error& error) {
  fmt::print(stderr, "zinc-rt: {}\n", error.message);
  const bool refused = error.code == StatusCode::kInvalidArgument || error.code == StatusCode::kCorrupt ||
                       error.code == StatusCode::kNotFound;
  return refused ? kRefused : kFailed;
}

int cli_main(int argc, const char* const* argv) {
  CLI::App app("ZINC_RT: runs language models from GGUF files and MLC folders, the same bits on every tier.",
               "zinc-rt");
  app.footer(
      "Examples:\n"
      "  zinc-rt run model.gguf -p \"The capital of France is\" -n 32\n"
      "  zinc-rt chat model.gguf\n"
      "  zinc-rt serve model.gguf\n"
      "  zinc-rt info model.gguf\n"
      "Exit codes: 0 done, 1 failed, 2 bad usage, 3 the input is refused.");
  app.set_version_flag("--version", std::string("zinc-rt ") + kVersion);
  app.require_subcommand(1);
  int exit = kDone;
  for (const auto add : {add_run, add_chat, add_serve, add_key, add_info, add_plan, add_ir, add_tiers, add_tokenize,
                         add_convert, add_validate, add_trace, add_bench, add_sched_test})
    add(app, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadUsage;
  }
  return exit;
}

}  // namespace zinc_rt::tools
