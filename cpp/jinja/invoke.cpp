// Implements calls of macros, call blocks, recursive loops, functions and methods.
#include "jinja/interpreter.h"

namespace zinc_rt::jinja {

namespace {

std::size_t bytes_of(const Activation& activation) {
  return sizeof(Activation) + 32 + activation.slots.size() * sizeof(Value);
}

}  // namespace

Activation* Interpreter::new_activation(int n_slots, Activation* parent) {
  auto activation = std::make_unique<Activation>();
  activation->slots.resize(static_cast<std::size_t>(n_slots));
  activation->parent = parent;
  heap_.add_bytes(bytes_of(*activation));
  activations_.push_back(std::move(activation));
  return activations_.back().get();
}

// Frees an activation when its function returns. Activations end in the reverse order of their start. A captured
// activation stays until the render ends.
void Interpreter::drop_activation(Activation* activation) {
  if (activation->captured || activations_.back().get() != activation) return;
  heap_.subtract_bytes(bytes_of(*activation));
  activations_.pop_back();
}

Value Interpreter::make_macro(const MacroStmt& stmt) {
  for (Activation* a = current_; a != nullptr && !a->captured; a = a->parent) a->captured = true;
  auto* macro = new MacroObject;
  macro->kind = Kind::kMacro;
  macro->proto = &stmt.proto;
  macro->closure = current_;
  return heap_.adopt(macro, sizeof(MacroObject), 0);
}

Status Interpreter::exec_macro(const MacroStmt& stmt) {
  slot(stmt.ref) = make_macro(stmt);
  return {};
}

Status Interpreter::exec_call_block(const MacroStmt& stmt) {
  ZRT_TRY(Value text, eval_call(static_cast<const CallExpr&>(*stmt.call), make_macro(stmt)));
  if (!text.is_str()) return raise("the call of a call block gave {}, not str", type_name(text));
  return write(text.view());
}

Status Interpreter::exec_generation(const MacroStmt& stmt) {
  Args none;
  Value body = make_macro(stmt);
  ZRT_TRY(Value text, call_macro(body.as<MacroObject>(), none));
  return write(text.view());
}

Status Interpreter::fill_parameters(const MacroStmt& stmt, Args& args, Activation& activation) {
  const MacroProto& proto = stmt.proto;
  auto& slots = activation.slots;
  auto at = [&](int slot) -> Value& { return slots[static_cast<std::size_t>(slot)]; };
  std::size_t n = stmt.parameters.size();
  std::vector<bool> taken(args.named.size(), false);
  auto take_named = [&](std::string_view name) -> Value {
    for (std::size_t i = 0; i < args.named.size(); ++i) {
      if (taken[i] || args.named[i].first != name) continue;
      taken[i] = true;
      return args.named[i].second;
    }
    return Value();
  };
  bool has_caller_parameter = false;
  for (std::size_t i = 0; i < n; ++i) {
    const MacroParameter& parameter = stmt.parameters[i];
    at(parameter.slot) = i < args.positional.size() ? args.positional[i] : take_named(parameter.name.text());
    has_caller_parameter = has_caller_parameter || parameter.name.text() == "caller";
  }
  if (proto.accepts_caller && !has_caller_parameter && stmt.caller_slot >= 0) {
    Value caller = take_named("caller");
    if (caller.is_missing() || caller.is_none()) caller = undefined("No caller defined");
    at(stmt.caller_slot) = caller;
  }
  std::string shown = proto.name.empty() ? std::string("None") : repr_of(proto.name);
  Value rest = proto.accepts_kwargs ? dict() : Value();
  for (std::size_t i = 0; i < args.named.size(); ++i) {
    if (taken[i]) continue;
    if (!proto.accepts_kwargs) return raise("macro {} takes no keyword argument '{}'", shown, args.named[i].first);
    ZRT_CHECK_OK(dict_set_named(*this, rest.as<DictObject>(), args, i));
  }
  if (proto.accepts_kwargs) at(stmt.kwargs_slot) = rest;
  if (proto.accepts_varargs) {
    std::vector<Value> more;
    for (std::size_t i = n; i < args.positional.size(); ++i) more.push_back(args.positional[i]);
    at(stmt.varargs_slot) = tuple(std::move(more));
  } else if (args.positional.size() > n) {
    return raise("macro {} takes not more than {} argument(s)", shown, n);
  }
  return {};
}

// Evaluates the defaults of parameters that were not given. This happens at every call, in order, so that a default can
// use the parameters before it.
Status Interpreter::fill_defaults(const MacroStmt& stmt) {
  for (const MacroParameter& parameter : stmt.parameters) {
    if (!slot({0, parameter.slot}).is_missing()) continue;
    Value value;
    if (parameter.otherwise) {
      ZRT_TRY(value, eval(*parameter.otherwise));
    } else {
      value = undefined(fmt::format("parameter '{}' was not provided", parameter.name.text()));
    }
    slot({0, parameter.slot}) = std::move(value);
  }
  return {};
}

Result<Value> Interpreter::run_macro_body(const MacroStmt& stmt) {
  Capture capture(*this);
  enter_scope(stmt.scope);
  ZRT_CHECK_OK(fill_defaults(stmt));
  ZRT_TRY(Flow flow, exec_body(stmt.body));
  (void)flow;
  return str(capture.copy());
}

Result<Value> Interpreter::call_macro(const MacroObject& macro, Args& args) {
  const MacroStmt& stmt = *macro.proto->statement;
  Activation* activation = new_activation(stmt.n_slots, macro.closure);
  Result<Value> result = Value();
  if (Status filled = fill_parameters(stmt, args, *activation); !filled) {
    result = std::unexpected(filled.error());
  } else {
    Switch inside(*this, activation);
    result = run_macro_body(stmt);
  }
  drop_activation(activation);
  return result;
}

Result<Value> Interpreter::call_loop(const LoopObject& loop, const Value& iterable) {
  if (loop.recursive == nullptr) {
    return raise("The loop must have the 'recursive' marker to be called recursively.");
  }
  Level level(*this);
  if (too_deep()) return depth_error();
  const ForStmt& stmt = *loop.recursive;
  for (Activation* a = loop.closure; a != nullptr && !a->captured; a = a->parent) a->captured = true;
  Activation* activation = new_activation(stmt.n_slots, loop.closure);
  Result<Value> result = Value();
  {
    Switch inside(*this, activation);
    Capture capture(*this);
    Result<Flow> flow = exec_iterations(stmt, iterable, loop.depth0 + 1);
    result = flow ? Result<Value>(str(capture.copy())) : std::unexpected(flow.error());
  }
  drop_activation(activation);
  return result;
}

Result<Value> Interpreter::call(const Value& callee, Args& args) {
  if (over()) return limit_error();
  Level level(*this);
  if (too_deep()) return depth_error();
  switch (callee.kind()) {
    case Kind::kBuiltin: return callee.as_builtin()->call(*this, Value(), args);
    case Kind::kMethod: {
      const auto& method = callee.as<MethodObject>();
      return method.method->call(*this, method.self, args);
    }
    case Kind::kMacro: return call_macro(callee.as<MacroObject>(), args);
    case Kind::kLoop: {
      ZRT_TRY(auto a, bind("loop", args, {"iterable"}, 1));
      return call_loop(callee.as<LoopObject>(), a[0]);
    }
    case Kind::kJoiner: {
      ZRT_CHECK_OK(no_arguments("joiner", args));
      auto& joiner = callee.as<JoinerObject>();
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return str("");
    }
    case Kind::kUndefined: return undefined_error(*this, callee);
    default: return raise("'{}' object is not callable", type_name(callee));
  }
}

Result<Value> macro_attribute(Runtime& rt, const Value& macro, std::string_view name) {
  const MacroProto& proto = *macro.as<MacroObject>().proto;
  if (name == "name") return proto.name.empty() ? Value::none() : rt.str(proto.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& argument : proto.arguments) names.push_back(rt.str(argument));
    return rt.tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(proto.accepts_kwargs);
  if (name == "catch_varargs") return Value::boolean(proto.accepts_varargs);
  if (name == "caller") return Value::boolean(proto.accepts_caller);
  return Value();
}

}  // namespace zinc_rt::jinja
