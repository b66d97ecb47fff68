// Reads lines from a terminal, with editing and history, or from a pipe.
// Thread rule: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace zinc_rt::tools {

class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  bool is_terminal() const { return editor_ != nullptr; }
  // Reads a line without its end; nothing at the end of the input. On a terminal, pasted text is one text with its line
  // breaks if the terminal marks it (bracketed paste), and Ctrl-C drops the line. A text between two """ may span
  // several lines.
  std::optional<std::string> read();

 private:
  struct Editor;
  std::optional<std::string> read_line(bool goes_on);

  std::unique_ptr<Editor> editor_;  // null where standard input is no terminal
};

// Whether Ctrl-C was pressed since the first LineEditor, or since catch_interrupts().
bool was_interrupted();
void clear_interrupt();
// ends_reads: Ctrl-C also ends a wait for input.
void catch_interrupts(bool ends_reads);

}  // namespace zinc_rt::tools
