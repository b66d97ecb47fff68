#include "jinja/filters.h"

#include <algorithm>

#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace filters {
namespace {

Result<Value> random(Runtime&, const Value&, Args&) {
  return raise("the filter 'random' is not supported: a prompt must not depend on chance");
}

Result<Value> urlize(Runtime&, const Value&, Args&) {
  return raise("the filter 'urlize' is not supported");
}

constexpr Builtin kFilters[] = {
    {"abs", abs},
    {"attr", attr},
    {"batch", batch},
    {"capitalize", capitalize},
    {"center", center},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dictsort},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", filesizeformat},
    {"first", first},
    {"float", to_float},
    {"forceescape", force_escape},
    {"format", format},
    {"groupby", groupby},
    {"indent", indent},
    {"int", to_int},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"lower", lower},
    {"map", map},
    {"max", max},
    {"min", min},
    {"pprint", pprint},
    {"random", random},
    {"reject", reject},
    {"rejectattr", rejectattr},
    {"replace", replace},
    {"reverse", reverse},
    {"round", round},
    {"safe", safe},
    {"select", select},
    {"selectattr", selectattr},
    {"slice", slice},
    {"sort", sort},
    {"string", string},
    {"striptags", striptags},
    {"sum", sum},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", unique},
    {"upper", upper},
    {"urlencode", urlencode},
    {"urlize", urlize},
    {"wordcount", wordcount},
    {"wordwrap", wordwrap},
    {"xmlattr", xmlattr},
};

}  // namespace

Result<Value> soft_str(Runtime& rt, const Value& value) {
  if (value.is_str()) return value;
  ZRT_TRY(MarkedText text, to_str(rt, value));
  return rt.str(std::move(text));
}

AttributePath AttributePath::parse(Runtime& rt, const Value& path) {
  AttributePath out;
  if (path.is_missing() || path.is_none()) return out;
  if (!path.is_str()) {
    out.parts.push_back(path);
    return out;
  }
  std::string_view rest = path.text();
  for (;;) {
    std::size_t dot = rest.find('.');
    std::string_view part = rest.substr(0, dot);
    bool number = !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (number) {
      out.parts.push_back(Value::integer(std::stoll(std::string(part))));
    } else {
      out.parts.push_back(rt.str(std::string(part)));
    }
    if (dot == std::string_view::npos) return out;
    rest.remove_prefix(dot + 1);
  }
}

Result<Value> AttributePath::get(Runtime& rt, Value item) const {
  for (const Value& part : parts) {
    ZRT_TRY(item, get_item(rt, item, part));
    if (item.is_undefined() && !otherwise.is_missing() && !otherwise.is_none()) item = otherwise;
  }
  return item;
}

Value fold_case(Runtime& rt, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_str()) return value;
  return rt.str(to_lower(value.text()));
}

}  // namespace filters

const Builtin* find_filter(std::string_view name) {
  using filters::kFilters;
  auto at = std::lower_bound(std::begin(kFilters), std::end(kFilters), name,
                             [](const Builtin& filter, std::string_view wanted) { return filter.name < wanted; });
  return at != std::end(kFilters) && at->name == name ? at : nullptr;
}

}  // namespace zinc_rt::jinja
