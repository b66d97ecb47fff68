// Reading the arguments of a call, and the names of functions, filters and tests.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

// A macro or call block after the scope pass. The interpreter runs its body.
struct MacroStmt;
struct MacroProto {
  std::string name;  // empty for a call block
  std::vector<std::string> arguments;
  bool accepts_caller = false;  // the body uses caller, kwargs or varargs without having them as arguments
  bool accepts_kwargs = false;
  bool accepts_varargs = false;
  const MacroStmt* statement = nullptr;
};
Result<Value> macro_attribute(Runtime& rt, const Value& macro, std::string_view name);

// The arguments of `function` by parameter; missing if not given. The first n_required are required. Extra arguments,
// unknown names and duplicates are errors. A parameter named "" is positional only.
template <std::size_t N>
using Bound = std::array<Value, N>;
Status bind_arguments(std::string_view function, Args& args, const std::string_view* names, std::size_t n_names,
                      std::size_t n_required, Value* out);
template <std::size_t N>
Result<Bound<N>> bind(std::string_view function, Args& args, const std::string_view (&names)[N],
                      std::size_t n_required) {
  Bound<N> out;
  ZRT_CHECK_OK(bind_arguments(function, args, names, N, n_required, out.data()));
  return out;
}
Status no_arguments(std::string_view function, const Args& args);

// The value as an int or a str; `what` names it in the error.
Result<std::int64_t> need_int(std::string_view what, const Value& value);
Result<std::string_view> need_str(std::string_view what, const Value& value);

// Returns null if there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);

// Filters and tests get their operand as `self`.
Result<Value> call_filter(Runtime& rt, const Value& name, const Value& operand, Args& args);
Result<bool> call_test(Runtime& rt, const Value& name, const Value& operand, Args& args);

}  // namespace zinc_rt::jinja
