// Prints to standard output and standard error. If one of them is closed, full, or a pipe without a reader, the text is
// lost, but nothing here throws or ends the process. No other code in cpp/ prints; tests_py/check_layers.py checks
// that.
// Thread rule: any thread.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

void write_out(std::string_view text) noexcept;
void write_err(std::string_view text) noexcept;
void announce(std::string_view text) noexcept;
void vprint(void (*write)(std::string_view) noexcept, fmt::string_view format, fmt::format_args args) noexcept;

// Prints a result to standard output through a buffer. If text is lost, output_status() returns an error from then on.
template <class... T>
void print_out(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(write_out, format, fmt::make_format_args(args...));
}

// Prints a message to standard error at once.
template <class... T>
void print_err(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(write_err, format, fmt::make_format_args(args...));
}

// Prints a message to standard output at once, such as a server's first line. If it is lost, output_status() does not
// report that.
template <class... T>
void print_announcement(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(announce, format, fmt::make_format_args(args...));
}

// Flushes standard output. Errors: kUnavailable if any text of print_out() was lost.
Status output_status();

// Prints a result and flushes. Errors: those of output_status().
Status print_now(std::string_view text);

// Returns whether a result was lost because the reader of standard output closed it, as `head` does after its last
// line.
bool is_reader_gone();

// From now on, a message waits at most one second until standard error accepts it. After a message has timed out, later
// messages are dropped without a wait, until standard error accepts one again. Without this limit, a reader of standard
// error that stopped reading could block a server's work or its exit.
void limit_waiting_of_messages();

// Opens each of the descriptors 0, 1 and 2 that is closed. Otherwise the next file or socket that is opened would get
// the free number and receive our messages. Reading from 0 and writing to 1 and 2 still fails.
void hold_standard_descriptors();

}  // namespace zinc_rt
