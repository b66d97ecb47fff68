// Finds the methods of str, list, tuple, dict and the other types by name.
#pragma once

#include <string_view>

#include "jinja/value.h"

namespace zinc_rt::jinja {

// Returns the method of that name, or null if the type has none. Sets `forbidden` to true if the type has the method
// but the method would change its object.
const Builtin* find_method(const Value& object, std::string_view name, bool& forbidden);

// find_str_method() finds every method of str. It calls find_split_method() for the methods that are defined in
// methods_split.cpp.
const Builtin* find_str_method(std::string_view name);
const Builtin* find_split_method(std::string_view name);

}  // namespace zinc_rt::jinja
