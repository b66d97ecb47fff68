// Implements the functions that every template can call, such as range and strftime_now.
#include <ctime>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja {

namespace {

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's sandbox limits the length of a range to the same number

Result<Value> range(Runtime& rt, const Value&, Args& args) {
  ZRT_TRY(auto a, bind("range", args, {"", "", ""}, 1));
  std::int64_t bounds[3] = {0, 0, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    if (a[i].is_missing()) continue;
    if (a[i].is_undefined()) return undefined_error(rt, a[i]);
    ZRT_TRY(bounds[i], need_int("range() argument", a[i]));
    if (bounds[i] > kMaxRangeBound || bounds[i] < -kMaxRangeBound)
      return raise("range() argument {} is too big", bounds[i]);
  }
  if (a[1].is_missing()) std::swap(bounds[0], bounds[1]);
  if (bounds[2] == 0) return raise("range() arg 3 must not be zero");
  Value value = rt.range(bounds[0], bounds[1], bounds[2]);
  if (value.as<RangeObject>().size() > kMaxRange) {
    return raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
  }
  return value;
}

Result<Value> make_dict(Runtime& rt, const Value&, Args& args) {
  if (args.positional.size() > 1) {
    return raise("dict expected at most 1 argument, got {}", args.positional.size());
  }
  Value dict = rt.dict();
  auto& object = dict.as<DictObject>();
  if (!args.positional.empty()) ZRT_CHECK_OK(dict_update(rt, object, args.positional[0]));
  for (std::size_t i = 0; i < args.named.size(); ++i) ZRT_CHECK_OK(dict_set_named(rt, object, args, i));
  return dict;
}

Result<Value> make_namespace(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(Value attributes, make_dict(rt, self, args));
  auto* object = new NamespaceObject;
  object->kind = Kind::kNamespace;
  object->attributes = std::move(attributes);
  return rt.heap().adopt(object, sizeof(NamespaceObject), 0);
}

Result<Value> make_cycler(Runtime& rt, const Value&, Args& args) {
  if (!args.named.empty()) return raise("cycler() takes no keyword arguments");
  if (args.positional.empty()) return raise("at least one item has to be provided");
  auto* object = new CyclerObject;
  object->kind = Kind::kCycler;
  object->items = args.positional;
  return rt.heap().adopt(object, sizeof(CyclerObject), object->items.size() * sizeof(Value));
}

Result<Value> make_joiner(Runtime& rt, const Value&, Args& args) {
  ZRT_TRY(auto a, bind("joiner", args, {"sep"}, 0));
  auto* object = new JoinerObject;
  object->kind = Kind::kJoiner;
  object->separator = a[0].is_missing() ? rt.str(", ") : a[0];
  return rt.heap().adopt(object, sizeof(JoinerObject), 0);
}

Result<Value> raise_exception(Runtime& rt, const Value&, Args& args) {
  ZRT_TRY(auto a, bind("raise_exception", args, {"message"}, 1));
  ZRT_TRY(const MarkedText message, to_str(rt, a[0]));
  return raise("{}", message.text());
}

Result<Value> strftime_now(Runtime& rt, const Value&, Args& args) {
  ZRT_TRY(auto a, bind("strftime_now", args, {"format"}, 1));
  ZRT_TRY(std::string_view format, need_str("the format", a[0]));
  auto now = rt.limits().now.value_or(std::chrono::system_clock::now());
  auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  std::int64_t fraction = ((micros % 1'000'000) + 1'000'000) % 1'000'000;
  auto seconds = static_cast<std::time_t>((micros - fraction) / 1'000'000);
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return raise("the time cannot be shown");
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    if (rt.over()) return rt.limit_error();
    std::string directive = "%";
    directive += format[++i];
    if ((format[i] == '-' || format[i] == '_' || format[i] == '0') && i + 1 < format.size()) directive += format[++i];
    char last = directive.back();
    if (directive == "%f") {
      out += fmt::format("{:06}", fraction);
      continue;
    }
    // Python's datetime without a time zone prints nothing for %z and %Z.
    if (last == 'z' || last == 'Z') continue;
    char buffer[256];
    std::size_t n = std::strftime(buffer, sizeof(buffer), directive.c_str(), &local);
    out.append(buffer, n);
    ZRT_CHECK_OK(rt.reserve(out.size()));
  }
  return rt.str(MarkedText(std::move(out), a[0].view().has_marks()));
}

Result<Value> lipsum(Runtime&, const Value&, Args&) {
  return raise("the function 'lipsum' is not supported");
}

constexpr Builtin kGlobals[] = {
    {"range", range},
    {"dict", make_dict},
    {"namespace", make_namespace},
    {"cycler", make_cycler},
    {"joiner", make_joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"lipsum", lipsum},
};

}  // namespace

const Builtin* find_global(std::string_view name) {
  for (const Builtin& global : kGlobals) {
    if (global.name == name) return &global;
  }
  return nullptr;
}

}  // namespace zinc_rt::jinja
