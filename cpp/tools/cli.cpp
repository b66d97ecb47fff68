#include "tools/cli.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <system_error>

#include "base/error.h"
#include "tools/command.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {
namespace {

std::unexpected<Error> no_output(int why) {
  return fail(StatusCode::kUnavailable, "cannot write to standard output: {}", std::generic_category().message(why));
}

int run_command(int argc, const char* const* argv) {
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
                         add_convert, add_validate, add_trace, add_bench, add_completion, add_sched_test})
    add(app, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadUsage;
  }
  return exit;
}

}  // namespace

Status print_now(std::string_view text) {
  errno = EIO;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::fflush(stdout) != 0)
    return no_output(errno);
  return {};
}

CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (code == std::errc{} && end == text.data() + text.size()) return {};
        return fmt::format("{} is not a number from 0 to {}", text, UINT64_MAX);
      },
      "");
}

int report(const Error& error) {
  fmt::print(stderr, "zinc-rt: {}\n", error.message);
  const bool refused = error.code == StatusCode::kInvalidArgument || error.code == StatusCode::kCorrupt ||
                       error.code == StatusCode::kNotFound;
  return refused ? kRefused : kFailed;
}

int cli_main(int argc, const char* const* argv) {
  int exit = kDone;
  int why = 0;  // stdout cannot be written
  try {
    exit = run_command(argc, argv);
  } catch (const std::system_error& error) {  // as fmt::print throws it
    if (std::ferror(stdout) != 0)
      why = error.code().value();
    else
      exit = report({StatusCode::kInternal, error.what(), 0});
  } catch (const std::exception& error) {
    exit = report({StatusCode::kInternal, error.what(), 0});
  }
  if (std::fflush(stdout) != 0)
    why = errno;
  else if (why == 0 && std::ferror(stdout) != 0)
    why = EIO;
  if (why == 0 || exit != kDone) return exit;
  if (why == EPIPE) return kFailed;  // the reader had enough, as `head` has
  return report(no_output(why).error());
}

}  // namespace zinc_rt::tools
