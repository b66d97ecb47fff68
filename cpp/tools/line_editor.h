// LineEditor reads the user's lines in a conversation: from a terminal, with editing and history, or from a pipe.
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
  // Reads a line and returns it without its line end; returns nullopt at the end of the input. On a terminal with
  // bracketed paste, pasted text with line breaks is returned as one text. Ctrl-C discards the line. A text between two
  // """ may span several lines.
  std::optional<std::string> read();

 private:
  struct Editor;
  std::optional<std::string> read_line(bool goes_on);

  std::unique_ptr<Editor> editor_;  // null if standard input is not a terminal
};

// Returns whether Ctrl-C was pressed since the first LineEditor was made, or since catch_interrupts() was called.
bool was_interrupted();
void clear_interrupt();
// Handles Ctrl-C from now on. If ends_reads is set, Ctrl-C also ends a wait for input.
void catch_interrupts(bool ends_reads);

}  // namespace zinc_rt::tools
