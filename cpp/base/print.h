// Prints to standard output and standard error. If one of them is closed, full, or a pipe without a reader, the text is
// lost; nothing here throws or ends the process. Nothing else in cpp/ prints (tests_py/check_layers.py).
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

// Prints a message to standard error at once.
template <class... T>
void print_err(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(write_err, format, fmt::make_format_args(args...));
}

// Prints a message to standard output at once, such as a server's first line. Like one to standard error, it may be
// lost.
template <class... T>
void print_announcement(fmt::format_string<T...> format, T&&... args) noexcept {
  vprint(announce, format, fmt::make_format_args(args...));
}

// Flushes the output. Errors: kUnavailable if some of what print_out was given is lost.
Status output_status();

// Prints a result at once. Errors: as output_status().
Status print_now(std::string_view text);

// Whether a result was lost because the reader of standard output has gone, as `head` does.
bool is_reader_gone();

// From now on a message waits at most a second for standard error to accept it. After such a timeout, messages are
// dropped without waiting until one is accepted again. So a reader that stopped reading cannot hold up a server's work
// or its end.
void limit_waiting_of_messages();

// Opens those of the three standard descriptors that are closed. Otherwise a file or socket would get such a number,
// and then our messages. Reading and writing them still fails.
void hold_standard_descriptors();

}  // namespace zinc_rt
