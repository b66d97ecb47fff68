#include "tools/line_editor.h"
#include "base/print.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

namespace zinc_rt::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::size_t kMostPasted = 4u << 20;  // how many characters a paste may have

// Sets a UTF-8 locale if the user's is not. editline reads characters in the locale's encoding, and without UTF-8 it
// drops everything except ASCII.
void read_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::string to_utf8(const wchar_t* text) {
  const std::size_t n = std::wcstombs(nullptr, text, 0);
  if (n == static_cast<std::size_t>(-1)) return {};
  std::string out(n, '\0');
  std::wcstombs(out.data(), text, n);
  return out;
}

// Called when the terminal announces pasted text. Everything up to the closing mark is inserted as one text.
unsigned char paste(EditLine* editor, wint_t) {
  constexpr std::wstring_view kEnd = L"\x1b[201~";
  std::wstring text;
  wchar_t c = 0;
  while (el_wgetc(editor, &c) == 1) {
    text += c;
    if (text.ends_with(kEnd)) {
      text.resize(text.size() - kEnd.size());
      break;
    }
    if (text.size() > kMostPasted) break;
  }
  std::wstring shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == L'\r') {
      if (i + 1 == text.size() || text[i + 1] != L'\n') shown += L'\n';
    } else if (text[i] == L'\n' || text[i] == L'\t' || text[i] >= L' ') {
      shown += text[i];
    }
  }
  return el_winsertstr(editor, shown.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

bool understands_marks() {
  const char* name = std::getenv("TERM");
  return name != nullptr && *name != '\0' && std::strcmp(name, "dumb") != 0;
}

}  // namespace

bool was_interrupted() {
  return interrupted != 0;
}
void clear_interrupt() {
  interrupted = 0;
}
void catch_interrupts(bool ends_reads) {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = ends_reads ? 0 : SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

struct LineEditor::Editor {
  EditLine* line = nullptr;
  HistoryW* history = nullptr;
  bool has_marks = understands_marks();
  // Whether the next line continues a text. Static, because editline passes no user data to the function that returns
  // the prompt.
  static inline bool goes_on = false;

  Editor() {
    history = history_winit();
    HistEventW event;
    history_w(history, &event, H_SETSIZE, 1000);
    line = el_init("zinc-rt", stdin, stdout, stderr);
    el_wset(
        line, EL_PROMPT, +[](EditLine*) -> wchar_t* {
          static wchar_t first[] = L"> ", next[] = L". ";
          return goes_on ? next : first;
        });
    el_wset(line, EL_EDITOR, L"emacs");
    // With EL_SIGNAL, editline would send the signal to the process again, and any thread of the process might receive
    // it.
    el_wset(line, EL_SIGNAL, 0);
    el_wset(line, EL_HIST, history_w, history);
    el_wset(line, EL_ADDFN, L"zinc-paste", L"take what is pasted", paste);
    el_wset(line, EL_BIND, L"\\e[200~", L"zinc-paste", nullptr);
  }
  ~Editor() {
    el_end(line);
    history_wend(history);
  }
  void mark(bool on) const {
    if (!has_marks) return;
    print_announcement("\x1b[?2004{}", on ? 'h' : 'l');
  }
  void remember(const std::string& text) const {
    HistEventW event;
    std::wstring wide(text.size() + 1, L'\0');
    const auto n = std::mbstowcs(wide.data(), text.c_str(), wide.size());
    if (n == static_cast<std::size_t>(-1) || n == 0) return;
    wide.resize(n);
    history_w(history, &event, H_ENTER, wide.c_str());
  }
};

LineEditor::LineEditor() {
  catch_interrupts(false);
  if (isatty(STDIN_FILENO) == 0) return;
  read_utf8();
  editor_ = std::make_unique<Editor>();
}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read_line(bool goes_on) {
  if (!editor_) {
    std::string line;
    if (!std::getline(std::cin, line)) return {};
    return line;
  }
  Editor::goes_on = goes_on;
  const wchar_t* text = nullptr;
  int n = 0;
  editor_->mark(true);
  catch_interrupts(true);
  do {
    interrupted = 0;
    text = el_wgets(editor_->line, &n);
    if (interrupted != 0) {
      print_announcement("\n");
      el_wset(editor_->line, EL_REFRESH);
    }
    // Ctrl-C begins another line. Ctrl-D ends the input, even without a text.
  } while (text == nullptr && interrupted != 0);
  catch_interrupts(false);
  editor_->mark(false);
  if (text == nullptr) {
    print_announcement("\n");
    return {};
  }
  auto line = to_utf8(text);
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) editor_->remember(line);
  return line;
}

std::optional<std::string> LineEditor::read() {
  auto line = read_line(false);
  if (!line || !line->starts_with(kQuotes)) return line;
  auto text = line->substr(kQuotes.size());
  for (;;) {
    if (const auto end = text.rfind(kQuotes); end != std::string::npos) return text.substr(0, end);
    line = read_line(true);
    if (!line) return text;
    if (!text.empty()) text += '\n';
    text += *line;
  }
}

}  // namespace zinc_rt::tools
