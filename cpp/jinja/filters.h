// Declares all filters, grouped by the file that implements them. filters.cpp has the table of their names.
#pragma once

#include "jinja/call.h"

namespace zinc_rt::jinja::filters {

// Filter is the type of a filter function. `self` is the value before the `|`.
using Filter = Result<Value>(Runtime& rt, const Value& self, Args& args);

// filters_text.cpp implements these filters.
Filter capitalize, center, escape, filesizeformat, force_escape, format, indent, lower, replace, safe, string, title,
    trim, truncate, upper, urlencode, wordcount, xmlattr;
// filters_wrap.cpp implements these filters.
Filter pprint, striptags, wordwrap;
// filters_sequence.cpp implements these filters.
Filter batch, first, items, join, last, length, list, reverse, slice, sum, unique;
// filters_select.cpp implements these filters.
Filter dictsort, groupby, map, max, min, reject, rejectattr, select, selectattr, sort;
// filters_value.cpp implements these filters.
Filter abs, attr, default_value, to_float, to_int, round, tojson;

// Returns str(value). A str is returned unchanged and stays HTML markup if it is.
Result<Value> soft_str(Runtime& rt, const Value& value);

// Returns Python's TypeError for a value that a filter cannot iterate over.
std::unexpected<Error> not_iterable(const Value& value);

// AttributePath is a parsed argument "attribute" of a filter, such as "user.names.0": a path of keys in which whole
// numbers are indices. get() follows it from a value. If the argument was None, get() returns the value unchanged.
struct AttributePath {
  std::vector<Value> parts;
  Value otherwise;  // the filter's argument `default`, used in place of an undefined attribute; missing if not given

  static AttributePath parse(Runtime& rt, const Value& path);
  Result<Value> get(Runtime& rt, Value item) const;
};
// Returns a str in lower case if case_sensitive is false. Returns other values unchanged.
Value fold_case(Runtime& rt, const Value& value, bool case_sensitive);

}  // namespace zinc_rt::jinja::filters
