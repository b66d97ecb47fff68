#include "jinja/call.h"

#include "jinja/ops.h"

namespace zinc_rt::jinja {

Status bind_arguments(std::string_view function, Args& args, const std::string_view* names, std::size_t n_names,
                      std::size_t n_required, Value* out) {
  if (args.positional.size() > n_names) {
    return raise("{}() takes at most {} arguments ({} given)", function, n_names, args.positional.size());
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) out[i] = args.positional[i];
  for (auto& [name, value] : args.named) {
    std::size_t i = 0;
    while (i < n_names && (names[i].empty() || names[i] != name)) ++i;
    if (i == n_names) return raise("{}() got an unexpected keyword argument '{}'", function, name);
    if (!out[i].is_missing()) return raise("{}() got multiple values for argument '{}'", function, name);
    out[i] = value;
  }
  for (std::size_t i = 0; i < n_required; ++i) {
    if (!out[i].is_missing()) continue;
    if (names[i].empty()) return raise("{}() misses argument {}", function, i + 1);
    return raise("{}() misses argument '{}'", function, names[i]);
  }
  return {};
}

Status no_arguments(std::string_view function, const Args& args) {
  if (args.positional.empty() && args.named.empty()) return {};
  return raise("{}() takes no arguments ({} given)", function, args.positional.size() + args.named.size());
}

Result<std::int64_t> need_int(std::string_view what, const Value& value) {
  if (const Value whole = counted(value); whole.is_integral()) return whole.as_int();
  return raise("{} must be an integer, not '{}'", what, type_name(value));
}

Result<std::string_view> need_str(std::string_view what, const Value& value) {
  if (value.is_str()) return std::string_view(value.text());
  return raise("{} must be str, not '{}'", what, type_name(value));
}

Result<Value> call_filter(Runtime& rt, const Value& name, const Value& operand, Args& args) {
  const Builtin* filter = name.is_str() ? find_filter(name.text()) : nullptr;
  if (filter != nullptr) return filter->call(rt, operand, args);
  ZRT_TRY(const MarkedText text, to_repr(rt, name));
  return raise("No filter named {}.", text.text());
}

Result<bool> call_test(Runtime& rt, const Value& name, const Value& operand, Args& args) {
  const Builtin* test = name.is_str() ? find_test(name.text()) : nullptr;
  if (test != nullptr) {
    ZRT_TRY(Value result, test->call(rt, operand, args));
    return truthy(result);
  }
  ZRT_TRY(const MarkedText text, to_repr(rt, name));
  return raise("No test named {}.", text.text());
}

}  // namespace zinc_rt::jinja
