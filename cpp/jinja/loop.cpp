#include "jinja/loop.h"

#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

Result<bool> next_of_iterator(Runtime& rt, IteratorObject& iterator, Value& item) {
  if (!iterator.next) return false;
  if (iterator.running) return raise("generator already executing");
  Runtime::Level level(rt);
  if (rt.too_deep()) return rt.depth_error();
  iterator.running = true;
  Result<bool> more = iterator.next(rt, item);
  iterator.running = false;
  if (!more || !*more) iterator.next = nullptr;
  return more;
}

Result<Value> loop_cycle(Runtime&, const Value& self, Args& args) {
  if (args.positional.empty()) return raise("no items for cycling given");
  auto index = static_cast<std::size_t>(self.as<LoopObject>().index0);
  return args.positional[index % args.positional.size()];
}

Result<Value> loop_changed(Runtime& rt, const Value& self, Args& args) {
  auto& loop = self.as<LoopObject>();
  bool same = loop.changed_called && loop.last_changed.size() == args.positional.size();
  for (std::size_t i = 0; same && i < args.positional.size(); ++i) {
    ZRT_TRY(same, equals(rt, loop.last_changed[i], args.positional[i]));
  }
  if (same) return Value::boolean(false);
  loop.changed_called = true;
  loop.last_changed = args.positional;
  return Value::boolean(true);
}

constexpr Builtin kCycle{"cycle", loop_cycle};
constexpr Builtin kChanged{"changed", loop_changed};

}  // namespace

Result<bool> Cursor::next(Runtime& rt, Value& item) {
  if (rt.over()) return rt.limit_error();
  switch (source_.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined: return false;
    case Kind::kList:
    case Kind::kTuple: {
      const auto& items = source_.as<SeqObject>().items;
      if (position_ >= items.size()) return false;
      item = items[position_++];
      return true;
    }
    case Kind::kStr: {
      const std::string& text = source_.text();
      if (position_ >= text.size()) return false;
      std::size_t size = char_at(text, position_).size;
      item = rt.part(source_, std::string_view(text).substr(position_, size), false);
      position_ += size;
      return true;
    }
    case Kind::kDict: {
      const auto& items = source_.as<DictObject>().items;
      if (position_ >= items.size()) return false;
      item = items[position_++].first;
      return true;
    }
    case Kind::kDictView: {
      const auto& view = source_.as<DictViewObject>();
      const auto& items = view.dict.as<DictObject>().items;
      if (position_ >= items.size()) return false;
      const auto& [key, value] = items[position_++];
      switch (view.view) {
        case ViewKind::kKeys: item = key; break;
        case ViewKind::kValues: item = value; break;
        case ViewKind::kItems: item = rt.tuple({key, value}); break;
      }
      return true;
    }
    case Kind::kRange: {
      const auto& range = source_.as<RangeObject>();
      if (static_cast<std::int64_t>(position_) >= range.size()) return false;
      item = Value::integer(range.start + static_cast<std::int64_t>(position_++) * range.step);
      return true;
    }
    case Kind::kIterator: return next_of_iterator(rt, source_.as<IteratorObject>(), item);
    default: return raise("'{}' object is not iterable", type_name(source_));
  }
}

Result<bool> LoopObject::advance(Runtime& rt) {
  Value item;
  bool more = false;
  if (peeked) {
    more = !next_item.is_missing();
    item = std::move(next_item);
    next_item = Value();
    peeked = false;
  } else {
    ZRT_TRY(more, cursor.next(rt, item));
  }
  if (!more) return false;
  ++index0;
  previous_item = std::move(current_item);
  current_item = std::move(item);
  return true;
}

Result<bool> LoopObject::peek(Runtime& rt) {
  if (!peeked) {
    Value item;
    ZRT_TRY(bool more, cursor.next(rt, item));
    next_item = more ? std::move(item) : Value();
    peeked = true;
  }
  return !next_item.is_missing();
}

Result<std::int64_t> LoopObject::total(Runtime& rt) {
  if (length >= 0) return length;
  if (has_length(iterable)) {
    ZRT_TRY(length, jinja::length(rt, iterable));
    return length;
  }
  // The number of an iterator's items is only known after all of them have been taken.
  std::vector<Value> rest;
  Value item;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) break;
    rest.push_back(std::move(item));
  }
  length = static_cast<std::int64_t>(rest.size()) + index0 + 1 + (peeked && !next_item.is_missing() ? 1 : 0);
  cursor = Cursor(rt.list(std::move(rest)));
  return length;
}

Result<Value> loop_attribute(Runtime& rt, const Value& value, std::string_view name) {
  auto& loop = value.as<LoopObject>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") {
    ZRT_TRY(bool more, loop.peek(rt));
    return Value::boolean(!more);
  }
  if (name == "length") {
    ZRT_TRY(std::int64_t total, loop.total(rt));
    return Value::integer(total);
  }
  if (name == "revindex" || name == "revindex0") {
    ZRT_TRY(std::int64_t total, loop.total(rt));
    return Value::integer(total - loop.index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "previtem") {
    return loop.index0 == 0 ? rt.undefined("there is no previous item") : loop.previous_item;
  }
  if (name == "nextitem") {
    ZRT_TRY(bool more, loop.peek(rt));
    return more ? loop.next_item : rt.undefined("there is no next item");
  }
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "cycle") return rt.method(value, &kCycle);
  if (name == "changed") return rt.method(value, &kChanged);
  return Value();
}

}  // namespace zinc_rt::jinja
