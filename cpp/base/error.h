// Helpers to make and pass on Error values (zinc_rt/status.h).
#pragma once

#include <fmt/format.h>

#include <expected>
#include <utility>

#include "zinc_rt/status.h"

namespace zinc_rt {

// return fail(StatusCode::kCorrupt, "[gguf] {}: needs {} bytes, {} there", path, a, b);
template <class... Args>
std::unexpected<Error> fail(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), 0});
}

}  // namespace zinc_rt

#define ZRT_CONCAT_INNER(a, b) a##b
#define ZRT_CONCAT(a, b) ZRT_CONCAT_INNER(a, b)

// ZRT_TRY(auto x, f()): x = the value of f(), or return f()'s error from the enclosing function.
#define ZRT_TRY(declaration, expression)                                          \
  auto ZRT_CONCAT(zrt_result_, __LINE__) = (expression);                          \
  if (!ZRT_CONCAT(zrt_result_, __LINE__))                                         \
    return std::unexpected(std::move(ZRT_CONCAT(zrt_result_, __LINE__)).error()); \
  declaration = *std::move(ZRT_CONCAT(zrt_result_, __LINE__))

// ZRT_CHECK_OK(f()): return f()'s error from the enclosing function, if it has one.
#define ZRT_CHECK_OK(expression)                                            \
  do {                                                                      \
    auto zrt_status = (expression);                                         \
    if (!zrt_status) return std::unexpected(std::move(zrt_status).error()); \
  } while (0)
