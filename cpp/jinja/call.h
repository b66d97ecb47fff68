// Reads the arguments of a call by Python's rules, and finds functions, filters and tests by name.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

// MacroStmt is a macro or call block of the template's tree (ast.h). The interpreter runs its body when a MacroObject
// is called.
struct MacroStmt;
struct MacroProto {
  std::string name;  // the macro's name; empty for a call block
  std::vector<std::string> arguments;
  // True if the macro's body uses `caller`, but the macro has no parameter of that name. accepts_kwargs and
  // accepts_varargs mean the same for `kwargs` and `varargs`.
  bool accepts_caller = false;
  bool accepts_kwargs = false;
  bool accepts_varargs = false;
  const MacroStmt* statement = nullptr;
};
Result<Value> macro_attribute(Runtime& rt, const Value& macro, std::string_view name);

// Bound holds the arguments of a call by parameter; an element is missing if it was not given. bind() fills it. The
// first n_required parameters are required. Extra arguments, unknown names and duplicates are errors. A parameter named
// "" can only be given by position.
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

// Return the value as an int or a str. For another type the error names the value as `what`.
Result<std::int64_t> need_int(std::string_view what, const Value& value);
Result<std::string_view> need_str(std::string_view what, const Value& value);

// Find a filter, test or global function. Each returns null if nothing has this name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);

// Call a filter or test by its name. The function gets the operand as `self`.
Result<Value> call_filter(Runtime& rt, const Value& name, const Value& operand, Args& args);
Result<bool> call_test(Runtime& rt, const Value& name, const Value& operand, Args& args);

}  // namespace zinc_rt::jinja
