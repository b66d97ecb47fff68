// Implements the filters that take sequences apart and put them together.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja::filters {

std::unexpected<Error> not_iterable(const Value& value) {
  return raise("'{}' object is not iterable", type_name(value));
}

namespace {

Value iterate(Runtime& rt, std::string_view type_name, Value items) {
  NextFunction next = [cursor = Cursor(items)](Runtime& rt, Value& item) mutable { return cursor.next(rt, item); };
  return rt.iterator(type_name, std::move(next), Value());
}

// Returns the items in reverse order, as Python's reversed(). Returns missing for values without an order or a length.
Result<Value> reversed_items(Runtime& rt, const Value& value) {
  bool fits = value.is_sequence() || value.is_str() || value.is(Kind::kDict) || value.is(Kind::kDictView) ||
              value.is(Kind::kRange) || value.is_undefined();
  if (!fits) return Value();
  ZRT_TRY(std::vector<Value> items, to_vector(rt, value));
  std::reverse(items.begin(), items.end());
  return rt.list(std::move(items));
}

}  // namespace

Result<Value> length(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("length", args));
  ZRT_TRY(std::int64_t n, jinja::length(rt, self));
  return Value::integer(n);
}

Result<Value> list(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("list", args));
  if (!is_iterable(self)) return not_iterable(self);
  ZRT_TRY(std::vector<Value> items, to_vector(rt, self));
  return rt.list(std::move(items));
}

Result<Value> first(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("first", args));
  if (!is_iterable(self)) return not_iterable(self);
  Cursor cursor(self);
  Value item;
  ZRT_TRY(bool more, cursor.next(rt, item));
  return more ? item : rt.undefined("No first item, sequence was empty.");
}

Result<Value> last(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("last", args));
  if (self.is_sequence()) {
    const auto& items = self.as<SeqObject>().items;
    return items.empty() ? rt.undefined("No last item, sequence was empty.") : items.back();
  }
  ZRT_TRY(Value items, reversed_items(rt, self));
  if (items.is_missing()) return raise("'{}' object is not reversible", type_name(self));
  Args none;
  ZRT_TRY(Value item, first(rt, items, none));
  return item.is_undefined() && items.as<SeqObject>().items.empty() ? rt.undefined("No last item, sequence was empty.")
                                                                    : item;
}

Result<Value> reverse(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("reverse", args));
  if (self.is_str()) return get_slice(rt, self, Value(), Value(), Value::integer(-1));
  ZRT_TRY(Value items, reversed_items(rt, self));
  if (!items.is_missing()) return iterate(rt, self.is(Kind::kList) ? "list_reverseiterator" : "reversed", items);
  if (!is_iterable(self)) return raise("argument must be iterable");
  ZRT_TRY(std::vector<Value> all, to_vector(rt, self));
  std::reverse(all.begin(), all.end());
  return rt.list(std::move(all));
}

Result<Value> join(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("join", args, {"d", "attribute"}, 0));
  if (!is_iterable(self)) return not_iterable(self);
  AttributePath path = AttributePath::parse(rt, a[1]);
  MarkedText separator;
  if (!a[0].is_missing()) ZRT_CHECK_OK(append_str(rt, separator, a[0]));
  MarkedText out;
  Cursor cursor(self);
  Value item;
  for (bool at_first = true;; at_first = false) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) return rt.str(std::move(out));
    if (!path.parts.empty()) {
      ZRT_TRY(item, path.get(rt, item));
    }
    if (!at_first) out += separator.view();
    ZRT_CHECK_OK(append_str(rt, out, item));
    ZRT_CHECK_OK(rt.reserve(out.held_bytes()));
  }
}

Result<Value> items(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("items", args));
  Value mapping = self;
  NextFunction next = [mapping, at = std::size_t{0}](Runtime& rt, Value& item) mutable -> Result<bool> {
    if (mapping.is_undefined()) return false;
    if (!mapping.is(Kind::kDict)) return raise("Can only get item pairs from a mapping.");
    const auto& pairs = mapping.as<DictObject>().items;
    if (at >= pairs.size()) return false;
    item = rt.tuple({pairs[at].first, pairs[at].second});
    ++at;
    return true;
  };
  return rt.iterator("generator", std::move(next), Value());
}

Result<Value> sum(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("sum", args, {"attribute", "start"}, 0));
  if (!is_iterable(self)) return not_iterable(self);
  AttributePath path = AttributePath::parse(rt, a[0]);
  Value total = a[1].is_missing() ? Value::integer(0) : a[1];
  if (total.is_str()) return raise("sum() can't sum strings [use ''.join(seq) instead]");
  Cursor cursor(self);
  Value item;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) return total;
    ZRT_TRY(item, path.get(rt, item));
    ZRT_TRY(total, binary(rt, BinaryOp::kAdd, total, item));
  }
}

namespace {

// Returns an iterator for a filter that is a generator in Python: `make` is called, and can fail, only when the first
// item is taken.
Value deferred(Runtime& rt, const Value& self, Bound<2> args,
               Result<std::vector<Value>> (*make)(Runtime& rt, const Value& self, const Bound<2>& args)) {
  NextFunction next = [self, args, make, cursor = Cursor(), started = false](Runtime& rt,
                                                                             Value& item) mutable -> Result<bool> {
    if (!std::exchange(started, true)) {
      if (!is_iterable(self)) return not_iterable(self);
      ZRT_TRY(std::vector<Value> items, make(rt, self, args));
      cursor = Cursor(rt.list(std::move(items)));
    }
    return cursor.next(rt, item);
  };
  return rt.iterator("generator", std::move(next), self);
}

Result<std::vector<Value>> make_batches(Runtime& rt, const Value& self, const Bound<2>& a) {
  ZRT_TRY(std::vector<Value> all, to_vector(rt, self));
  // An invalid count leaves `line` at -1. Then no line is ever full, so the first line takes all items, as in Jinja.
  std::int64_t line = -1;
  if (a[0].is_number()) {
    ZRT_TRY(line, float_to_int(a[0].as_real()));
  }
  bool fill = !a[1].is_missing() && !a[1].is_none();
  if (fill && !a[0].is_integral() && !all.empty()) return raise("linecount must be an integer");
  std::vector<Value> lines;
  std::vector<Value> current;
  for (Value& item : all) {
    if (rt.over()) return rt.limit_error();
    if (static_cast<std::int64_t>(current.size()) == line) {
      lines.push_back(rt.list(std::move(current)));
      current.clear();
    }
    current.push_back(std::move(item));
  }
  if (!current.empty()) {
    if (fill && static_cast<std::int64_t>(current.size()) < line) {
      ZRT_CHECK_OK(rt.reserve(sizeof(Value), static_cast<std::uint64_t>(line)));
      current.resize(static_cast<std::size_t>(line), a[1]);
    }
    lines.push_back(rt.list(std::move(current)));
  }
  return lines;
}

Result<std::vector<Value>> make_slices(Runtime& rt, const Value& self, const Bound<2>& a) {
  ZRT_TRY(std::int64_t slices, need_int("slices", a[0]));
  if (slices == 0) return raise("integer division or modulo by zero");
  ZRT_TRY(std::vector<Value> all, to_vector(rt, self));
  std::vector<Value> columns;
  if (slices > 0) {
    ZRT_CHECK_OK(rt.reserve(sizeof(SeqObject) + sizeof(Value), static_cast<std::uint64_t>(slices)));
    std::size_t each = all.size() / static_cast<std::size_t>(slices);
    std::size_t with_extra = all.size() % static_cast<std::size_t>(slices);
    std::size_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(slices); ++i) {
      if (rt.over()) return rt.limit_error();
      std::size_t n = each + (i < with_extra ? 1 : 0);
      std::vector<Value> column(all.begin() + static_cast<std::ptrdiff_t>(at),
                                all.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      if (!a[1].is_missing() && !a[1].is_none() && i >= with_extra) column.push_back(a[1]);
      columns.push_back(rt.list(std::move(column)));
    }
  }
  return columns;
}

}  // namespace

Result<Value> batch(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("batch", args, {"linecount", "fill_with"}, 1));
  return deferred(rt, self, std::move(a), make_batches);
}

Result<Value> slice(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("slice", args, {"slices", "fill_with"}, 1));
  return deferred(rt, self, std::move(a), make_slices);
}

Result<Value> unique(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("unique", args, {"case_sensitive", "attribute"}, 0));
  bool case_sensitive = truthy(a[0]);
  NextFunction next = [cursor = Cursor(self), path = AttributePath::parse(rt, a[1]), case_sensitive, seen = rt.dict()](
                          Runtime& rt, Value& item) mutable -> Result<bool> {
    for (;;) {
      ZRT_TRY(bool more, cursor.next(rt, item));
      if (!more) return false;
      ZRT_TRY(Value key, path.get(rt, item));
      key = fold_case(rt, key, case_sensitive);
      auto& dict = seen.as<DictObject>();
      ZRT_TRY(const Value* found, dict_find(rt, dict, key));
      if (found != nullptr) continue;
      ZRT_CHECK_OK(dict_set(rt, dict, key, Value::none()));
      return true;
    }
  };
  return rt.iterator("generator", std::move(next), self);
}

}  // namespace zinc_rt::jinja::filters
