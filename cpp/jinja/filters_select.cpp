// Implements the filters that map, choose, sort and group items.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/loop.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja::filters {

namespace {

// Choice says how select, reject, selectattr and rejectattr choose items: which part of an item is tested, by which
// test, and with which arguments.
struct Choice {
  AttributePath path;
  Value test;  // if missing, the item's own truth value is tested
  Args arguments;

  Result<bool> matches(Runtime& rt, const Value& item) {
    ZRT_TRY(Value tested, path.get(rt, item));
    if (test.is_missing()) return truthy(tested);
    Args copy = arguments;
    return call_test(rt, test, tested, copy);
  }
};

template <bool wanted, bool by_attribute>
Result<Value> choose(Runtime& rt, const Value& self, Args& args) {
  // Python's filter is a generator, so it reports errors only when the first item is taken. This iterator does the
  // same.
  NextFunction next = [source = self, cursor = Cursor(self), given = args, choice = Choice{}, started = false](
                          Runtime& rt, Value& item) mutable -> Result<bool> {
    if (!std::exchange(started, true)) {
      if (!truthy(source)) return false;
      std::size_t used = 0;
      if (by_attribute) {
        if (given.positional.empty()) return raise("Missing parameter for attribute name");
        choice.path = AttributePath::parse(rt, given.positional[used++]);
      }
      if (used < given.positional.size()) {
        choice.test = given.positional[used++];
        choice.arguments.positional.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(used),
                                           given.positional.end());
        choice.arguments.named = given.named;
      }
    }
    for (;;) {
      ZRT_TRY(bool more, cursor.next(rt, item));
      if (!more) return false;
      ZRT_TRY(bool matches, choice.matches(rt, item));
      if (matches == wanted) return true;
    }
  };
  return rt.iterator("generator", std::move(next), self);
}

// Implements min and max. Returns the first item such that no other item's key is better.
template <CompareOp better>
Result<Value> extreme(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("min/max", args, {"case_sensitive", "attribute"}, 0));
  if (!is_iterable(self)) return not_iterable(self);
  AttributePath path = AttributePath::parse(rt, a[1]);
  bool case_sensitive = truthy(a[0]);
  Value best, best_key, item;
  Cursor cursor(self);
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) break;
    ZRT_TRY(Value key, path.get(rt, item));
    key = fold_case(rt, key, case_sensitive);
    bool take = best.is_missing();
    if (!take) {
      ZRT_TRY(take, compare(rt, better, key, best_key));
    }
    if (!take) continue;
    best = item;
    best_key = std::move(key);
  }
  return best.is_missing() ? rt.undefined("No aggregated item, sequence was empty.") : best;
}

}  // namespace

Result<Value> select(Runtime& rt, const Value& self, Args& args) {
  return choose<true, false>(rt, self, args);
}

Result<Value> reject(Runtime& rt, const Value& self, Args& args) {
  return choose<false, false>(rt, self, args);
}

Result<Value> selectattr(Runtime& rt, const Value& self, Args& args) {
  return choose<true, true>(rt, self, args);
}

Result<Value> rejectattr(Runtime& rt, const Value& self, Args& args) {
  return choose<false, true>(rt, self, args);
}

Result<Value> min(Runtime& rt, const Value& self, Args& args) {
  return extreme<CompareOp::kLt>(rt, self, args);
}

Result<Value> max(Runtime& rt, const Value& self, Args& args) {
  return extreme<CompareOp::kGt>(rt, self, args);
}

Result<Value> map(Runtime& rt, const Value& self, Args& args) {
  NextFunction next = [source = self, cursor = Cursor(self), given = args, path = AttributePath{}, filter = Value(),
                       started = false](Runtime& rt, Value& item) mutable -> Result<bool> {
    if (!std::exchange(started, true)) {
      if (!truthy(source)) return false;
      Value attribute;
      for (const auto& [name, value] : given.named) {
        if (name == "attribute") attribute = value;
      }
      if (given.positional.empty() && !attribute.is_missing()) {
        path = AttributePath::parse(rt, attribute);
        for (const auto& [name, value] : given.named) {
          if (name == "default") path.otherwise = value;
          if (name != "default" && name != "attribute") return raise("Unexpected keyword argument '{}'", name);
        }
      } else if (given.positional.empty()) {
        return raise("map requires a filter argument");
      } else {
        filter = given.positional[0];
        given.positional.erase(given.positional.begin());
      }
    }
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) return false;
    if (filter.is_missing()) {
      ZRT_TRY(item, path.get(rt, item));
      return true;
    }
    Args copy = given;
    ZRT_TRY(item, call_filter(rt, filter, item, copy));
    return true;
  };
  return rt.iterator("generator", std::move(next), self);
}

Result<Value> sort(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("sort", args, {"reverse", "case_sensitive", "attribute"}, 0));
  if (!is_iterable(self)) return not_iterable(self);
  std::vector<AttributePath> paths;
  if (a[2].is_str()) {
    std::string_view rest = a[2].text();
    for (;;) {
      std::size_t comma = rest.find(',');
      paths.push_back(AttributePath::parse(rt, rt.str(std::string(rest.substr(0, comma)))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(AttributePath::parse(rt, a[2]));
  }
  ZRT_TRY(std::vector<Value> items, to_vector(rt, self));
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      ZRT_TRY(Value part, path.get(rt, item));
      key.push_back(fold_case(rt, part, truthy(a[1])));
    }
    keys.push_back(rt.list(std::move(key)));
    if (rt.over()) return rt.limit_error();
  }
  ZRT_CHECK_OK(sort_by_keys(rt, keys, items, truthy(a[0])));
  return rt.list(std::move(items));
}

Result<Value> dictsort(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("dictsort", args, {"case_sensitive", "by", "reverse"}, 0));
  std::string_view by = "key";
  if (!a[1].is_missing()) {
    ZRT_TRY(by, need_str("by", a[1]));
  }
  if (by != "key" && by != "value") return raise("You can only sort by either \"key\" or \"value\"");
  if (self.is_undefined()) return undefined_error(rt, self);
  if (!self.is(Kind::kDict)) return raise("'{}' object has no attribute 'items'", type_name(self));
  std::vector<Value> keys;
  std::vector<Value> items;
  for (const auto& [key, value] : self.as<DictObject>().items) {
    if (rt.over()) return rt.limit_error();
    keys.push_back(fold_case(rt, by == "key" ? key : value, truthy(a[0])));
    items.push_back(rt.tuple({key, value}));
  }
  ZRT_CHECK_OK(sort_by_keys(rt, keys, items, truthy(a[2])));
  return rt.list(std::move(items));
}

Result<Value> groupby(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("groupby", args, {"attribute", "default", "case_sensitive"}, 1));
  if (!is_iterable(self)) return not_iterable(self);
  AttributePath path = AttributePath::parse(rt, a[0]);
  path.otherwise = a[1];
  bool case_sensitive = truthy(a[2]);
  ZRT_TRY(std::vector<Value> items, to_vector(rt, self));
  std::vector<Value> keys;
  for (const Value& item : items) {
    if (rt.over()) return rt.limit_error();
    ZRT_TRY(Value key, path.get(rt, item));
    keys.push_back(fold_case(rt, key, case_sensitive));
  }
  ZRT_CHECK_OK(sort_by_keys(rt, keys, items, false));
  std::vector<Value> groups;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t end = i + 1;
    for (; end < items.size(); ++end) {
      ZRT_TRY(bool same, equals(rt, keys[end], keys[i]));
      if (!same) break;
    }
    // Keys were converted to lower case only for comparing. A group's name is the original key of its first item.
    Value name = keys[i];
    if (!case_sensitive) {
      ZRT_TRY(name, path.get(rt, items[i]));
    }
    std::vector<Value> members(items.begin() + static_cast<std::ptrdiff_t>(i),
                               items.begin() + static_cast<std::ptrdiff_t>(end));
    Value group = rt.tuple({name, rt.list(std::move(members))});
    group.as<SeqObject>().is_group = true;
    groups.push_back(std::move(group));
    i = end;
  }
  return rt.list(std::move(groups));
}

}  // namespace zinc_rt::jinja::filters
