// Texts for standard output and standard error. Either may be closed, full, or a pipe whose reader left; a text is then lost, and
// nothing here throws or ends the process. Nothing else in cpp/ prints (tests_py/check_layers.py).
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

// A result, on standard output, buffered. What is lost is remembered: output_status() tells it.
template <class... T>
void print_out(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(write_out, format, fmt::make_format_args(args...));
}

// A message, on standard error, at once.
template <class... T>
void print_err(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(write_err, format, fmt::make_format_args(args...));
}

// A message on standard output, at once: a server's first line. It may be lost as one on standard error may.
template <class... T>
void print_announcement(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(announce, format, fmt::make_format_args(args...));
}

// Sends what is buffered. Errors: kUnavailable, when some of what print_out was given is lost.
Status output_status();

// A result at once. Errors: of output_status().
Status print_now(std::string_view text);

// A result is lost since standard output has no reader any more: it had enough, as `head` has.
bool is_reader_gone();

// From now on a message waits for a second at most until standard error takes it, and then none does until it takes one
// again: a reader that stopped reading cannot hold up a server's work, or its end.
void limit_waiting_of_messages();

// Opens what of the three standard descriptors is closed, so that no file or socket gets its number and then messages.
// Reading and writing them fails as before.
void hold_standard_descriptors();

}  // namespace zinc_rt
