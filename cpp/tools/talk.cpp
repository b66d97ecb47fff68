#include "tools/talk.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/near_name.h"
#include "base/print.h"
#include "tools/command.h"
#include "tools/line_editor.h"
#include "tools/sampling_options.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

enum class Next : std::uint8_t { kGoOn, kAskAgain, kLeave };

struct TalkCommand {
  std::vector<std::string> names;
  const char *arguments, *help;
  Next (*run)(Talk& talk, const std::string& argument);
};

void drop_last_turn(Talk& talk) {
  for (int i = 0; i < 2 && !talk.history.empty(); ++i) talk.history.erase(talk.history.size() - 1);
}

Next show_help(Talk&, const std::string&);

const std::vector<TalkCommand>& commands() {
  static const std::vector<TalkCommand> all{
      {{"/help", "/?"}, "", "this list", show_help},
      {{"/reset", "/clear"},
       "",
       "forget the conversation",
       [](Talk& talk, const std::string&) {
         talk.history.clear();
         return Next::kGoOn;
       }},
      {{"/undo"},
       "",
       "take the last turn back",
       [](Talk& talk, const std::string&) {
         drop_last_turn(talk);
         return Next::kGoOn;
       }},
      {{"/retry"},
       "",
       "answer the last turn again",
       [](Talk& talk, const std::string&) {
         if (talk.history.empty()) return Next::kGoOn;
         talk.history.erase(talk.history.size() - 1);
         return Next::kAskAgain;
       }},
      {{"/system"},
       "TEXT",
       "another system message; without TEXT: none",
       [](Talk& talk, const std::string& text) {
         talk.system = text;
         return Next::kGoOn;
       }},
      {{"/set"},
       "NAME VALUE",
       "a setting, such as temperature 0.2; without: shows them",
       [](Talk& talk, const std::string& text) {
         const auto space = std::min(text.find(' '), text.size());
         if (text.empty()) {
           print_err("{}\n", sampling_text(talk.request));
         } else if (const auto done = set_sampling(talk.request, text.substr(0, space),
                                                   text.substr(std::min(space + 1, text.size())));
                    !done) {
           print_err("{}\n", done.error().message);
         }
         return Next::kGoOn;
       }},
      {{"/exit", "/quit", "/bye"},
       "",
       "leave; Ctrl-D does it too",
       [](Talk&, const std::string&) { return Next::kLeave; }},
  };
  return all;
}

Next show_help(Talk&, const std::string&) {
  for (const auto& command : commands()) {
    std::string names;
    for (const auto& name : command.names) names += (names.empty() ? "" : ", ") + name;
    print_err("  {:24} {}\n", names + (*command.arguments != '\0' ? " " : "") + command.arguments, command.help);
  }
  print_err(
      "  {:24} several lines until the next \"\"\"; what is pasted is one turn, too\n"
      "  {:24} stops an answer, or drops the line\n",
      "\"\"\"", "Ctrl-C");
  return Next::kGoOn;
}

// Runs a command such as /help. Returns nullopt if the line is not a command.
std::optional<Next> run_command(Talk& talk, const std::string& line) {
  if (!line.starts_with('/') || line.find('\n') != std::string::npos) return {};
  const auto space = std::min(line.find(' '), line.size());
  const auto name = line.substr(0, space);
  auto argument = line.substr(std::min(space + 1, line.size()));
  argument.erase(0, argument.find_first_not_of(' '));
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (std::ranges::find(command.names, name) != command.names.end()) return command.run(talk, argument);
    names.insert(names.end(), command.names.begin(), command.names.end());
  }
  // A line that begins with a path is ordinary text and not a command.
  if (name.find('/', 1) != std::string::npos) return {};
  print_err("there is no command {}{}; /help lists them\n", name, did_you_mean(name, names));
  return Next::kGoOn;
}

void show_statistics(const Talk& talk, const TurnAnswer& answer) {
  if (answer.generated_tokens == 0 && answer.prompt_tokens == 0) return;
  const auto used = answer.prompt_tokens + answer.generated_tokens;
  std::string words = fmt::format("[{} tokens", answer.generated_tokens);
  if (answer.tokens_per_s > 0) words += fmt::format(", {:.1f} tokens/s", answer.tokens_per_s);
  words += talk.max_context > 0 ? fmt::format("; context {} of {}", used, talk.max_context)
                                : fmt::format("; context {}", used);
  if (answer.cached_tokens > 0) words += fmt::format(", {} from the cache", answer.cached_tokens);
  if (answer.finish_reason == "length")
    words += fmt::format("; cut off at max_tokens {}: /set max_tokens {}", talk.request.max_tokens,
                         2 * talk.request.max_tokens);
  print_err("{}]\n", words);
}

}  // namespace

Json Talk::messages() const {
  Json out = Json::array();
  if (!system.empty()) out.push_back({{"role", "system"}, {"content", system}});
  for (const auto& message : history) out.push_back(message);
  return out;
}

int converse(Talk& talk, const Answerer& answerer) {
  bool has_failed = false;
  LineEditor input;
  print_err("{}\n/help lists what else can be done here; Ctrl-D leaves, Ctrl-C stops an answer\n",
            sampling_text(talk.request));
  while (const auto line = input.read()) {
    if (line->find_first_not_of(" \t\n") == std::string::npos) continue;
    const auto command = run_command(talk, *line);
    if (command == Next::kLeave) break;
    if (command == Next::kGoOn) continue;
    if (!command) talk.history.push_back({{"role", "user"}, {"content", *line}});
    clear_interrupt();
    const auto answer = answerer(talk);
    has_failed = !answer;
    // Removes the question from the conversation, so that the user can ask a shorter question.
    if (!answer) {
      report(answer.error());
      if (is_reader_gone()) return kReaderGone;
      talk.history.erase(talk.history.size() - 1);
      continue;
    }
    talk.history.push_back({{"role", "assistant"}, {"content", answer->text}});
    if (input.is_terminal()) show_statistics(talk, *answer);
  }
  return has_failed && !input.is_terminal() ? kFailed : kDone;
}

}  // namespace zinc_rt::tools
