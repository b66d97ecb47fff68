// Methods of str, list, tuple, dict and the other types, by name.
#pragma once

#include <string_view>

#include "jinja/value.h"

namespace zinc_rt::jinja {

// The method of that name, null if the type has none. forbidden: the type has it, but it would change its object.
const Builtin* find_method(const Value& object, std::string_view name, bool& forbidden);

// methods_str.cpp, methods_split.cpp
const Builtin* find_str_method(std::string_view name);
const Builtin* find_split_method(std::string_view name);

}  // namespace zinc_rt::jinja
