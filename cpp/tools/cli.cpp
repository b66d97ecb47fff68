#include "tools/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/near_name.h"
#include "base/print.h"
#include "base/read_number.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

using Add = void (*)(CLI::App& app, int& exit);
struct Group {
  const char* name;
  std::vector<Add> commands;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"Use a model", {add_run, add_chat, add_run_batch, add_serve, add_key}},
      {"Models by name", {add_models, add_pull, add_alias, add_rm}},
      {"Look at a model", {add_info, add_plan, add_ir, add_tokenize, add_convert}},
      {"Compare and measure", {add_validate, add_bench, add_trace, add_replay, add_sched_test}},
      {"Look at a device", {add_pm4_test, add_mem_test, add_asm}},
      {"This program", {add_tiers, add_completion}},
  };
  return all;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return names;
}

// Returns the word that stands where a command is expected. Returns an empty text if the word is a command or is
// missing.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const auto names = command_names(app);
  return std::ranges::find(names, argv[1]) == names.end() ? argv[1] : std::string();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* group : app.get_subcommands(nullptr))
    if (group->get_name().empty())
      for (auto& name : option_names(*group)) names.push_back(std::move(name));
  return names;
}

// Returns the innermost command that was parsed, such as `bench serve` and not `bench`.
const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.front());
}

// Reports each word that the command does not accept, together with a similar option. If the word looks like a prompt,
// says how to pass a prompt.
void print_unexpected(const CLI::App& app) {
  const auto& command = deepest(app);
  std::string name = command.get_name();
  for (const auto* parent = command.get_parent(); parent != nullptr; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  const bool has_prompt = command.get_option_no_throw("--prompt") != nullptr;
  bool is_value = false;  // the word is the value of an unknown option
  for (const auto& word : app.remaining(true)) {
    if (word.starts_with("-")) {
      const auto option = word.substr(0, word.find('='));
      print_err("{}: there is no option {}{}\n", name, option, did_you_mean(option, option_names(command)));
      is_value = true;
    } else if (!std::exchange(is_value, false)) {
      print_err("{}: \"{}\" is not expected{}\n", name, word,
                has_prompt ? "; a text to go on with is -p TEXT, a message --chat TEXT" : "");
    }
  }
  print_err("{} --help lists what there is.\n", name);
}

// Describes the values that an option accepts, from CLI11's name of its type.
std::string_view wanted_of(std::string_view type) {
  if (type.starts_with("UINT")) return "a whole number from 0 on";
  if (type.starts_with("INT")) return "a whole number";
  return type.starts_with("FLOAT") ? "a number" : "another value";
}

// Reports a value of the wrong type. CLI11's message contains the option and the value: "Could not convert: --top-k =
// x".
bool print_unconverted(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) == nullptr) return false;
  const std::string text = error.what();
  const auto colon = text.find(": "), equals = text.find(" = ", colon);
  if (colon == std::string::npos || equals == std::string::npos) return false;
  const auto name = text.substr(colon + 2, equals - colon - 2);
  const auto* option = deepest(app).get_option_no_throw(name);
  if (option == nullptr) return false;
  print_err("{}: {} is given, {} wanted\n", name, text.substr(equals + 3), wanted_of(option->get_type_name()));
  return true;
}

// Replaces the arguments `help COMMAND` by `COMMAND --help`.
std::vector<const char*> without_help_command(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help") return words;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return words;
}

int run_command(int given_argc, const char* const* given_argv) {
  const auto words = without_help_command(given_argc, given_argv);
  const auto argc = static_cast<int>(words.size());
  const auto* const argv = words.data();
  CLI::App app("ZINC_RT: runs language models from GGUF files and MLC folders, the same bits on every tier.",
               "zinc-rt");
  app.footer(
      "Examples:\n"
      "  zinc-rt chat model.gguf\n"
      "  zinc-rt run model.gguf -p \"The capital of France is\" -n 32\n"
      "  zinc-rt serve model.gguf\n"
      "  zinc-rt pull smollm2:135m; zinc-rt chat smollm2:135m\n"
      "`zinc-rt help COMMAND` (or `zinc-rt COMMAND --help`) has options and examples.\n"
      "Exit codes: 0 done, 1 failed or not supported, 2 bad usage, 3 the input is wrong, 141 the output's reader "
      "left.");
  app.set_version_flag("--version", version_text, "Display the version and what was built in, and exit");
  app.require_subcommand(1);
  int exit = kDone;
  for (const auto& [name, commands] : groups()) {
    for (const auto add : commands) {
      const auto before = app.get_subcommands(nullptr).size();
      add(app, exit);
      for (std::size_t i = before; i < app.get_subcommands(nullptr).size(); ++i)
        app.get_subcommands(nullptr)[i]->group(name);
    }
  }
  if (const auto word = unknown_command(app, argc, argv); !word.empty()) {
    print_err("zinc-rt: there is no command \"{}\"{}\nzinc-rt --help lists them.\n", word,
              did_you_mean(word, command_names(app)));
    return kBadUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_unexpected = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    if (print_unconverted(app, error)) return kBadUsage;
    if (!is_unexpected) {
      std::ostringstream out, err;
      const int code = app.exit(error, out, err);
      print_out("{}", std::move(out).str());
      print_err("{}", std::move(err).str());
      if (code == 0) return kDone;
    }
    if (app.remaining_size(true) > 0) print_unexpected(app);
    return kBadUsage;
  }
  return exit;
}

}  // namespace

CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        if (read_number(text, value)) return {};
        return fmt::format("{} is not a number from 0 to {}", text, UINT64_MAX);
      },
      "");
}

int report(const Error& error) {
  if (error.code == StatusCode::kUnavailable && is_reader_gone()) return kReaderGone;
  print_err("zinc-rt: {}\n", error.message);
  const bool refused = error.code == StatusCode::kInvalidArgument || error.code == StatusCode::kCorrupt ||
                       error.code == StatusCode::kNotFound;
  return refused ? kRefused : kFailed;
}

int cli_main(int argc, const char* const* argv) {
  hold_standard_descriptors();
  int exit = kDone;
  try {
    exit = run_command(argc, argv);
  } catch (const std::exception& error) {
    exit = report({StatusCode::kInternal, error.what(), 0});
  }
  if (const auto written = output_status(); !written && exit == kDone) return report(written.error());
  return exit;
}

}  // namespace zinc_rt::tools
