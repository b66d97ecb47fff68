// Declares functions that walk over the tree of a template in the order in which Jinja visits it. The scope pass uses
// them.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "jinja/ast.h"

namespace zinc_rt::jinja {

using ExprVisit = std::function<void(const Expr&)>;
// Calls `visit` for each direct child of an expression, in source order.
void for_each_child(const Expr& expr, const ExprVisit& visit);

// Returns those of `names` that a body loads before it stores them, including in inner scopes and macros.
using NameUses = std::set<std::string, std::less<>>;
NameUses undeclared_names(const Body& body, std::initializer_list<std::string_view> names);

// Returns whether the loop, or anything in it, assigns to the name.
bool stores_name(const ForStmt& loop, std::string_view name);

}  // namespace zinc_rt::jinja
