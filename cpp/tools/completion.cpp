// `zinc-rt completion`: writes a script that completes command lines in a shell, or the manual page. Both are generated
// from the commands and options that the program parses, so they always match the program.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/print.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

struct Argument {
  std::vector<std::string> names;  // such as "-n", "--max-tokens"; a positional argument has only its name
  std::string help, type;          // type: empty if the option takes no value
  std::vector<std::string> values;
  bool repeats = false;
};

struct Command {
  std::string path;  // such as "/bench/serve"; empty for the program itself
  std::string help, footer;
  std::vector<Argument> options, positionals;
  std::vector<std::pair<std::string, std::string>> commands;  // pairs of name and help
};

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Returns the values that an option allows. CLI11 shows a set of values as "TEXT:{a,b}" and has no other access to it.
std::vector<std::string> values_of(const std::string& type) {
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

Argument argument_of(const CLI::Option& option) {
  Argument argument;
  for (const auto& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) argument.names.push_back("--" + name);
  if (argument.names.empty()) argument.names.push_back(option.get_name());
  argument.help = replaced(option.get_description(), "\n", " ");
  if (option.get_type_size_max() > 0 && option.get_expected_max() > 0) argument.type = option.get_type_name();
  argument.values = values_of(argument.type);
  argument.repeats = option.get_items_expected_max() > 1;
  return argument;
}

// Collects a command's options. Options without a group are hidden from help. CLI11 represents a group of options as an
// App without a name.
void collect_arguments(const CLI::App& app, Command& command) {
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->nonpositional() ? command.options : command.positionals).push_back(argument_of(*option));
  for (const CLI::App* group : app.get_subcommands(nullptr))
    if (group->get_name().empty()) collect_arguments(*group, command);
}

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& commands) {
  Command command{path, replaced(app.get_description(), "\n", " "), app.get_footer(), {}, {}, {}};
  collect_arguments(app, command);
  const auto shown = [](const CLI::App* sub) { return !sub->get_name().empty() && !sub->get_group().empty(); };
  for (const CLI::App* sub : app.get_subcommands(shown))
    command.commands.emplace_back(sub->get_name(), replaced(sub->get_description(), "\n", " "));
  commands.push_back(std::move(command));
  for (const CLI::App* sub : app.get_subcommands(shown)) collect(*sub, path + "/" + sub->get_name(), commands);
}

// Returns a `case` pattern that matches these commands, such as "/run | /bench | /bench/serve".
std::string paths(const std::vector<Command>& commands, const char* between) {
  std::string text;
  for (const Command& command : commands)
    if (!command.path.empty()) text += (text.empty() ? "" : between) + command.path;
  return text;
}

std::string bash(const std::vector<Command>& commands) {
  std::string values, words;
  for (const Command& command : commands) {
    std::string names, options, any;
    for (const auto& [name, help] : command.commands) names += name + " ";
    for (const Argument& positional : command.positionals)
      names += fmt::format("{}", fmt::join(positional.values, " "));
    for (const Argument& option : command.options) {
      for (const auto& name : option.names) {
        options += name + " ";
        if (option.type.empty()) continue;
        if (option.values.empty())
          any += fmt::format("{}'{} {}'", any.empty() ? "" : " | ", command.path, name);
        else
          values += fmt::format("  '{} {}') words=\"{}\" ;;\n", command.path, name, fmt::join(option.values, " "));
      }
    }
    if (!any.empty()) values += fmt::format("  {}) words= ;;\n", any);
    words += fmt::format("    '{}') [[ $current == -* ]] && words=\"{}\" || words=\"{}\" ;;\n", command.path, options,
                         names);
  }
  // If no word matches, -o default completes file names.
  return fmt::format(R"(# bash completion of zinc-rt: source <(zinc-rt completion bash)
_zinc_rt() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= word
  [[ $current == = ]] && current=
  [[ $previous == = ]] && previous=${{COMP_WORDS[COMP_CWORD-2]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command/$word" in
    {}) command+=/$word ;;
    esac
  done
  case "$command $previous" in
{}  *)
    case "$command" in
{}    esac
    ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _zinc_rt zinc-rt
)",
                     paths(commands, " | "), values, words);
}

std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":", "`", "$"})
    text = replaced(text, special, std::string("\\") + special);
  return replaced(text, "'", R"('\'')");
}

std::string zsh(const std::vector<Command>& commands) {
  std::string cases;
  for (const Command& command : commands) {
    std::string list;
    for (const auto& [name, help] : command.commands) list += fmt::format(" '{}:{}'", name, zsh_text(help));
    cases += fmt::format("  '{}')\n    commands=({})\n    _arguments -s \\\n", command.path, list);
    for (const Argument& option : command.options) {
      for (const auto& name : option.names) {
        const std::string once = option.repeats ? "*" : fmt::format("({})", fmt::join(option.names, " "));
        const std::string value = option.type.empty()     ? ""
                                  : option.values.empty() ? fmt::format(":{}:_files", zsh_text(option.type))
                                                          : fmt::format(":value:({})", fmt::join(option.values, " "));
        const char* joint = option.type.empty() ? "" : name.starts_with("--") ? "=" : "+";
        cases += fmt::format("      '{}{}{}[{}]{}' \\\n", once, name, joint, zsh_text(option.help), value);
      }
    }
    if (const auto& to = command.positionals; !to.empty() && !to.front().values.empty())
      cases += fmt::format("      '1:{}:({})' ;;\n", to.front().names.front(), fmt::join(to.front().values, " "));
    else if (command.commands.empty())
      cases += "      '*:file:_files' ;;\n";
    else
      cases += fmt::format("      '1:command:{{_describe command commands{}}}' ;;\n",
                           command.positionals.empty() ? "" : "; _files");
  }
  return fmt::format(R"(#compdef zinc-rt
# zsh completion of zinc-rt: source <(zinc-rt completion zsh), or save it as _zinc-rt in a folder of $fpath
_zinc_rt() {{
  local command=
  local -a commands
  while (( CURRENT > 2 )); do
    case "$command/$words[2]" in
    {}) command+="/$words[2]"; shift words; (( CURRENT-- )) ;;
    *) break ;;
    esac
  done
  case "$command" in
{}  esac
}}
if [[ $funcstack[1] == _zinc-rt ]]; then _zinc_rt "$@"; else compdef _zinc_rt zinc-rt; fi
)",
                     paths(commands, " | "), cases);
}

std::string fish_text(std::string text) {
  return "'" + replaced(replaced(std::move(text), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish(const std::vector<Command>& commands) {
  std::string lines;
  for (const Command& command : commands) {
    const std::string here = fmt::format("complete -c zinc-rt -n '__zinc_rt_is \"{}\"'", command.path);
    for (const auto& [name, help] : command.commands)
      lines += fmt::format("{} {}-a {} -d {}\n", here, command.positionals.empty() ? "-f " : "", name, fish_text(help));
    for (const Argument& positional : command.positionals)
      if (!positional.values.empty()) lines += fmt::format("{} -f -a '{}'\n", here, fmt::join(positional.values, " "));
    for (const Argument& option : command.options) {
      lines += here;
      for (const auto& name : option.names)
        lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.values.empty())
        lines += fmt::format(" -x -a '{}'", fmt::join(option.values, " "));
      else if (!option.type.empty())
        lines += " -r";
      lines += fmt::format(" -d {}\n", fish_text(option.help));
    }
  }
  return fmt::format(R"(# fish completion of zinc-rt: zinc-rt completion fish | source
function __zinc_rt_is
  set -l command ""
  for word in (commandline -opc)[2..-1]
    switch "$command/$word"
      case {}
        set command "$command/$word"
    end
  end
  test "$command" = "$argv[1]"
end
{})",
                     paths(commands, " "), lines);
}

std::string man_text(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  if (text.starts_with('.') || text.starts_with('\'')) text = "\\&" + text;
  return replaced(replaced(std::move(text), "\n.", "\n\\&."), "\n'", "\n\\&'");
}

std::string man(const std::vector<Command>& commands) {
  const auto list = [](const std::vector<Argument>& arguments) {
    std::string text;
    for (const Argument& argument : arguments) {
      text += fmt::format(".TP\n\\fB{}\\fR", man_text(fmt::format("{}", fmt::join(argument.names, ", "))));
      if (!argument.type.empty()) text += fmt::format(" \\fI{}\\fR", man_text(argument.type));
      text += "\n" + man_text(argument.help) + "\n";
    }
    return text;
  };
  const Command& program = commands.front();
  std::string text = fmt::format(
      ".TH ZINC\\-RT 1\n.ad l\n.nh\n.SH NAME\nzinc\\-rt \\- run and serve language models\n.SH SYNOPSIS\n.B "
      "zinc\\-rt\n\\fICOMMAND\\fR "
      "[\\fIOPTION\\fR ...]\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n{}.SH COMMANDS\n",
      man_text(program.help), list(program.options));
  for (const Command& command : commands) {
    if (command.path.empty()) continue;
    std::string positionals;
    for (const Argument& positional : command.positionals) positionals += " " + positional.names.front();
    text +=
        fmt::format(".SS \"zinc\\-rt{}{}\"\n{}\n{}{}", man_text(replaced(command.path, "/", " ")),
                    man_text(positionals), man_text(command.help), list(command.positionals), list(command.options));
    if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", man_text(command.footer));
  }
  return text + fmt::format(".SH NOTES\n.nf\n{}\n.fi\nEnvironment variables: zinc\\-rt tiers \\-\\-env\n",
                            man_text(program.footer));
}

}  // namespace

void add_completion(CLI::App& app, int& exit) {
  const auto what = std::make_shared<std::string>();
  auto& command =
      *app.add_subcommand("completion", "a script by which your shell completes zinc-rt; or its manual page");
  command.footer("Example: zinc-rt completion bash > ~/.local/share/bash-completion/completions/zinc-rt");
  command.add_option("SHELL", *what, "bash, zsh or fish; man: the manual page")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command.callback([what, &app, &exit] {
    std::vector<Command> commands;
    collect(app, "", commands);
    const auto status = print_now(*what == "bash"   ? bash(commands)
                                  : *what == "zsh"  ? zsh(commands)
                                  : *what == "fish" ? fish(commands)
                                                    : man(commands));
    exit = status ? kDone : report(status.error());
  });
}

}  // namespace zinc_rt::tools
