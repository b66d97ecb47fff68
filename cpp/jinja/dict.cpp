#include "jinja/loop.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja {

namespace {

constexpr std::size_t kSmall = 8;  // up to this many items a scan is faster than a hash table

std::uint64_t hash_text(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

Status insert_bucket(Runtime& rt, DictObject& dict, std::uint32_t index) {
  ZRT_TRY(std::uint64_t hash, hash_of(rt, dict.items[index].first));
  std::size_t mask = dict.buckets.size() - 1;
  std::size_t at = hash & mask;
  while (dict.buckets[at] != 0) {
    if (rt.over()) return rt.limit_error();
    at = (at + 1) & mask;
  }
  dict.buckets[at] = index + 1;
  return {};
}

Status rebuild(Runtime& rt, DictObject& dict) {
  std::size_t size = 32;
  while (size < dict.items.size() * 3) size *= 2;
  dict.buckets.assign(size, 0);
  for (std::uint32_t i = 0; i < dict.items.size(); ++i) ZRT_CHECK_OK(insert_bucket(rt, dict, i));
  return {};
}

}  // namespace

const Value* dict_get(const DictObject& dict, std::string_view key) {
  if (dict.buckets.empty()) {
    for (const auto& [k, v] : dict.items) {
      if (k.is_str() && k.text() == key) return &v;
    }
    return nullptr;
  }
  std::size_t mask = dict.buckets.size() - 1;
  for (std::size_t at = hash_text(key) & mask; dict.buckets[at] != 0; at = (at + 1) & mask) {
    const auto& [k, v] = dict.items[dict.buckets[at] - 1];
    if (k.is_str() && k.text() == key) return &v;
  }
  return nullptr;
}

Result<const Value*> dict_find(Runtime& rt, const DictObject& dict, const Value& key) {
  if (key.is_str()) return dict_get(dict, key.text());
  ZRT_TRY(std::uint64_t hash, hash_of(rt, key));
  if (dict.buckets.empty()) {
    for (const auto& [k, v] : dict.items) {
      ZRT_TRY(bool same, equals(rt, k, key));
      if (same) return &v;
    }
    return nullptr;
  }
  std::size_t mask = dict.buckets.size() - 1;
  for (std::size_t at = hash & mask; dict.buckets[at] != 0; at = (at + 1) & mask) {
    const auto& [k, v] = dict.items[dict.buckets[at] - 1];
    ZRT_TRY(bool same, equals(rt, k, key));
    if (same) return &v;
  }
  return nullptr;
}

Status dict_set(Runtime& rt, DictObject& dict, const Value& key, Value value) {
  ZRT_TRY(const Value* found, dict_find(rt, dict, key));
  if (found != nullptr) {
    const_cast<Value&>(*found) = std::move(value);
    return {};
  }
  dict.items.emplace_back(key, std::move(value));
  rt.heap().charge(dict, sizeof(dict.items[0]) + 16);
  if (dict.items.size() <= kSmall) return {};
  if (dict.items.size() * 2 > dict.buckets.size()) return rebuild(rt, dict);
  return insert_bucket(rt, dict, static_cast<std::uint32_t>(dict.items.size() - 1));
}

Status dict_set(Runtime& rt, DictObject& dict, std::string_view key, Value value) {
  return dict_set(rt, dict, rt.str(std::string(key)), std::move(value));
}

Status dict_set_named(Runtime& rt, DictObject& dict, const Args& args, std::size_t n) {
  const auto& [name, value] = args.named[n];
  return dict_set(rt, dict, rt.str(MarkedText(name, args.has_foreign_names)), value);
}

Status dict_update(Runtime& rt, DictObject& target, const Value& source) {
  if (source.is(Kind::kDict)) {
    for (const auto& [k, v] : source.as<DictObject>().items) {
      if (rt.over()) return rt.limit_error();
      ZRT_CHECK_OK(dict_set(rt, target, k, v));
    }
    return {};
  }
  Cursor cursor(source);
  Value pair;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, pair));
    if (!more) return {};
    ZRT_TRY(std::vector<Value> items, unpack(rt, pair, 2));
    ZRT_CHECK_OK(dict_set(rt, target, items[0], items[1]));
  }
}

}  // namespace zinc_rt::jinja
