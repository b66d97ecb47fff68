// The filters by area; filters.cpp has the table of all.
#pragma once

#include "jinja/call.h"

namespace zinc_rt::jinja::filters {

// A filter's operand is `self`.
using Filter = Result<Value>(Runtime& rt, const Value& self, Args& args);

// filters_text.cpp
Filter capitalize, center, escape, filesizeformat, force_escape, format, indent, lower, replace, safe, string, title,
    trim, truncate, upper, urlencode, wordcount, xmlattr;
// filters_wrap.cpp
Filter pprint, striptags, wordwrap;
// filters_sequence.cpp
Filter batch, first, items, join, last, length, list, reverse, slice, sum, unique;
// filters_select.cpp
Filter dictsort, groupby, map, max, min, reject, rejectattr, select, selectattr, sort;
// filters_value.cpp
Filter abs, attr, default_value, to_float, to_int, round, tojson;

// str(value). A str is returned as it is, with its markup.
Result<Value> soft_str(Runtime& rt, const Value& value);

// Python's TypeError for a value that a filter cannot walk.
std::unexpected<Error> not_iterable(const Value& value);

// Follows a dotted path of keys, in which whole numbers are indices. For None it returns the value unchanged.
struct AttributePath {
  std::vector<Value> parts;
  Value otherwise;  // put in place of an undefined part, missing for none

  static AttributePath parse(Runtime& rt, const Value& path);
  Result<Value> get(Runtime& rt, Value item) const;
};
// The str in lower case if letter case does not matter.
Value fold_case(Runtime& rt, const Value& value, bool case_sensitive);

}  // namespace zinc_rt::jinja::filters
