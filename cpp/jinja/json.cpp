#include "jinja/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_number.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

class Writer {
 public:
  Writer(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style) {}

  Status write(const Value& value) {
    if (rt_.over()) return rt_.limit_error();
    switch (value.kind()) {
      case Kind::kNone: out += "null"; return {};
      case Kind::kBool: out += value.as_bool() ? "true" : "false"; return {};
      case Kind::kInt: out.append_own(std::to_string(value.as_int())); return {};
      case Kind::kFloat: out.append_own(number(value.as_real())); return {};
      case Kind::kNumber:
        ZRT_CHECK_OK(rt_.reserve(out.held_bytes() + value.as<NumberObject>().text.size()));
        out.append_own(value.as<NumberObject>().text);
        return {};
      case Kind::kStr: return quote(value.view());
      case Kind::kList:
      case Kind::kTuple: return write_list(value.as<SeqObject>());
      case Kind::kDict: return write_dict(value);
      default: return raise("Object of type {} is not JSON serializable", type_name(value));
    }
  }

  MarkedText out;

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
    return float_repr(d);
  }

  static void escape_unit(std::string& out, std::uint32_t unit) { out += fmt::format("\\u{:04x}", unit); }

  // Appends the text in quotes and escaped. Each marked or unmarked run can be escaped separately, because it consists
  // of whole characters.
  Status quote(MarkedView text) {
    if (rt_.over(text.size() / 64)) return rt_.limit_error();
    ZRT_CHECK_OK(rt_.reserve(out.held_bytes() + text.size()));
    out += '"';
    text.for_each_run([&](std::string_view run, bool is_foreign) {
      std::string escaped;
      escape(escaped, run);
      out.append(escaped, is_foreign);
    });
    out += '"';
    return {};
  }

  // Appends what stands between the quotes: the text with JSON's escapes.
  void escape(std::string& out, std::string_view text) const {
    for (std::size_t pos = 0; pos < text.size();) {
      auto byte = static_cast<unsigned char>(text[pos]);
      if (byte >= 0x80) {
        Char c = char_at(text, pos);
        if (!style_.ensure_ascii || c.code >= kInvalidChar) {
          out.append(text, pos, c.size);
        } else if (c.code >= 0x10000) {
          escape_unit(out, 0xd800 + ((c.code - 0x10000) >> 10));
          escape_unit(out, 0xdc00 + ((c.code - 0x10000) & 0x3ff));
        } else {
          escape_unit(out, c.code);
        }
        pos += c.size;
        continue;
      }
      switch (byte) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        case '\f': out += "\\f"; break;
        case '\b': out += "\\b"; break;
        default:
          if (byte < 0x20 || (byte == 0x7f && style_.ensure_ascii)) {
            escape_unit(out, byte);
          } else {
            out += static_cast<char>(byte);
          }
      }
      ++pos;
    }
  }

  Status new_line() {
    if (!style_.indent) return {};
    ZRT_CHECK_OK(rt_.reserve(out.held_bytes() + style_.indent->size() * level_));
    out += '\n';
    for (std::size_t i = 0; i < level_; ++i) out.append_own(*style_.indent);
    return {};
  }

  Status write_list(const SeqObject& list) {
    Runtime::Level level(rt_);
    if (rt_.too_deep()) return rt_.depth_error();
    if (list.items.empty()) {
      out += "[]";
      return {};
    }
    out += '[';
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out.append_own(style_.item_separator);
      ZRT_CHECK_OK(new_line());
      ZRT_CHECK_OK(write(list.items[i]));
    }
    --level_;
    ZRT_CHECK_OK(new_line());
    out += ']';
    return {};
  }

  Status write_key(const Value& key) {
    switch (key.kind()) {
      case Kind::kStr: return quote(key.view());
      case Kind::kNone: return quote(MarkedView("null"));
      case Kind::kBool: return quote(MarkedView(key.as_bool() ? "true" : "false"));
      case Kind::kInt: return quote(MarkedView(std::to_string(key.as_int())));
      case Kind::kFloat: return quote(MarkedView(number(key.as_real())));
      case Kind::kNumber: return quote(MarkedView(key.as<NumberObject>().text));
      default: return raise("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
  }

  Status write_dict(const Value& dict) {
    Runtime::Level level(rt_);
    if (rt_.too_deep()) return rt_.depth_error();
    const auto& items = dict.as<DictObject>().items;
    if (items.empty()) {
      out += "{}";
      return {};
    }
    std::vector<Value> keys;
    std::vector<Value> values;
    if (style_.sort_keys) {
      for (const auto& [key, value] : items) {
        keys.push_back(key);
        values.push_back(value);
      }
      ZRT_CHECK_OK(sort_by_keys(rt_, keys, values, false));
    }
    out += '{';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out.append_own(style_.item_separator);
      ZRT_CHECK_OK(new_line());
      ZRT_CHECK_OK(write_key(style_.sort_keys ? keys[i] : items[i].first));
      out.append_own(style_.key_separator);
      ZRT_CHECK_OK(write(style_.sort_keys ? values[i] : items[i].second));
    }
    --level_;
    ZRT_CHECK_OK(new_line());
    out += '}';
    return {};
  }

  Runtime& rt_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
};

}  // namespace

Result<Value> from_json(Runtime& rt, nlohmann::ordered_json& json, const OwnWords& words, bool is_own) {
  using Type = nlohmann::ordered_json::value_t;
  if (rt.over()) return rt.limit_error();
  switch (json.type()) {
    case Type::null: return Value::none();
    case Type::boolean: return Value::boolean(json.get<bool>());
    case Type::number_integer: return Value::integer(json.get<std::int64_t>());
    case Type::number_unsigned: {
      auto n = json.get<std::uint64_t>();
      if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return rt.number(std::to_string(n));
      return Value::integer(static_cast<std::int64_t>(n));
    }
    case Type::number_float: return Value::real(json.get<double>());
    case Type::binary: {
      auto text = number_text(json);
      ZRT_CHECK_OK(rt.reserve(text.size()));
      return rt.number(std::move(text));
    }
    case Type::string: {
      auto& text = json.get_ref<std::string&>();
      ZRT_CHECK_OK(rt.reserve(text.size()));
      return is_own ? rt.str(std::move(text)) : rt.foreign_str(std::move(text));
    }
    case Type::array: {
      Runtime::Level level(rt);
      if (rt.too_deep()) return rt.depth_error();
      std::vector<Value> items;
      items.reserve(json.size());
      for (auto& item : json) {
        ZRT_TRY(Value value, from_json(rt, item, words, is_own));
        items.push_back(std::move(value));
      }
      return rt.list(std::move(items));
    }
    case Type::object: {
      Runtime::Level level(rt);
      if (rt.too_deep()) return rt.depth_error();
      Value dict = rt.dict();
      for (auto item = json.begin(); item != json.end(); ++item) {
        const bool is_word =
            item.key() == words.key && item.value().is_string() &&
            std::ranges::find(words.words, item.value().get_ref<const std::string&>()) != words.words.end();
        ZRT_TRY(Value value, from_json(rt, item.value(), words, is_own || is_word));
        const Value key = is_own ? rt.str(item.key()) : rt.foreign_str(item.key());
        ZRT_CHECK_OK(dict_set(rt, dict.as<DictObject>(), key, std::move(value)));
      }
      return dict;
    }
    case Type::discarded: break;
  }
  return raise("the context holds a value of type '{}'", json.type_name());
}

Result<MarkedText> to_json(Runtime& rt, const Value& value, const JsonStyle& style) {
  Writer writer(rt, style);
  ZRT_CHECK_OK(writer.write(value));
  return std::move(writer.out);
}

}  // namespace zinc_rt::jinja
