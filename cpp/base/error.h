// Defines functions that create Error values (zinc_rt/status.h), and macros that return them to the caller.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "zinc_rt/status.h"

namespace zinc_rt {

// Makes `reword` change the text of each new error message from now on, until it is set to null. Only tests use it, to
// show that no code depends on the text of messages.
using Reword = std::string (*)(std::string message);
void reword_messages(Reword reword);
// Returns the message as reword_messages() changes it. fail() passes every message through this function.
std::string worded(std::string message);

// The arguments of fail() that describe an error besides its message: the code, the reason, and the request field at
// fault.
struct Fault {
  StatusCode code;
  std::string field{};  // name of the request field at fault, as in Error::field
  Reason reason = Reason::kNone;
};

// Returns an error with this message, for example:
// return fail(StatusCode::kCorrupt, "[gguf] {}: needs {} bytes, {} there", path, a, b);
template <class... Args>
std::unexpected<Error> fail(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, worded(fmt::format(format, std::forward<Args>(args)...))});
}
// Returns an error that also names a field of the request, for example:
// return fail({StatusCode::kInvalidArgument, "n"}, "[request] n is {}, 1 to {} allowed", n, most);
template <class... Args>
std::unexpected<Error> fail(Fault fault, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{fault.code, worded(fmt::format(format, std::forward<Args>(args)...)), 0, fault.reason,
                               std::move(fault.field)});
}

// Adds the name of a request field to an error that has none, if the error's code is kInvalidArgument. Returns the
// error.
inline Error about(std::string_view field, Error error) {
  if (error.code == StatusCode::kInvalidArgument && error.field.empty()) error.field = field;
  return error;
}

}  // namespace zinc_rt

#define ZRT_CONCAT_INNER(a, b) a##b
#define ZRT_CONCAT(a, b) ZRT_CONCAT_INNER(a, b)

// ZRT_TRY(auto x, f()) sets x to the value of f(). If f() failed, the enclosing function returns f()'s error.
#define ZRT_TRY(declaration, expression)                                          \
  auto ZRT_CONCAT(zrt_result_, __LINE__) = (expression);                          \
  if (!ZRT_CONCAT(zrt_result_, __LINE__))                                         \
    return std::unexpected(std::move(ZRT_CONCAT(zrt_result_, __LINE__)).error()); \
  declaration = *std::move(ZRT_CONCAT(zrt_result_, __LINE__))

// ZRT_CHECK_OK(f()) calls f(). If it failed, the enclosing function returns its error.
#define ZRT_CHECK_OK(expression)                                            \
  do {                                                                      \
    auto zrt_status = (expression);                                         \
    if (!zrt_status) return std::unexpected(std::move(zrt_status).error()); \
  } while (0)
