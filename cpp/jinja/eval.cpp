#include "jinja/interpreter.h"
#include "jinja/methods.h"

namespace zinc_rt::jinja {

const Value& Interpreter::slot(const SlotRef& ref) const {
  const Activation* activation = current_;
  for (int i = 0; i < ref.hops; ++i) activation = activation->parent;
  return activation->slots[static_cast<std::size_t>(ref.slot)];
}

Value& Interpreter::slot(const SlotRef& ref) {
  return const_cast<Value&>(static_cast<const Interpreter*>(this)->slot(ref));
}

Result<Value> Interpreter::eval(const Expr& expr) {
  if (over()) return limit_error();
  switch (expr.kind) {
    case ExprKind::kConst: return static_cast<const ConstExpr&>(expr).value;
    case ExprKind::kName: return eval_name(static_cast<const NameExpr&>(expr));
    case ExprKind::kTuple:
    case ExprKind::kList: return eval_items(static_cast<const ItemsExpr&>(expr));
    case ExprKind::kDict: return eval_dict(static_cast<const DictExpr&>(expr));
    case ExprKind::kConditional: return eval_conditional(static_cast<const ConditionalExpr&>(expr));
    case ExprKind::kLogic: return eval_logic(static_cast<const ItemsExpr&>(expr));
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPlus: return eval_unary(static_cast<const UnaryExpr&>(expr));
    case ExprKind::kCompare: return eval_compare(static_cast<const CompareExpr&>(expr));
    case ExprKind::kBinary: return eval_binary(static_cast<const BinaryExpr&>(expr));
    case ExprKind::kConcat: return eval_concat(static_cast<const ItemsExpr&>(expr));
    case ExprKind::kAttribute: {
      const auto& attribute = static_cast<const AttributeExpr&>(expr);
      ZRT_TRY(Value object, eval(*attribute.object));
      return get_attribute(*this, object, attribute.name);
    }
    case ExprKind::kItem: {
      const auto& item = static_cast<const ItemExpr&>(expr);
      ZRT_TRY(Value object, eval(*item.object));
      ZRT_TRY(Value key, eval(*item.key));
      return get_item(*this, object, key);
    }
    case ExprKind::kSlice: return eval_slice(static_cast<const SliceExpr&>(expr));
    case ExprKind::kCall: return eval_call(static_cast<const CallExpr&>(expr), Value());
    case ExprKind::kFilter:
    case ExprKind::kTest: return eval_apply(static_cast<const ApplyExpr&>(expr));
  }
  return raise("unknown expression");
}

Result<Value> Interpreter::eval_name(const NameExpr& expr) {
  if (expr.ref.slot >= 0) {
    const Value& value = slot(expr.ref);
    if (!value.is_missing()) return value;
  }
  return undefined_name(expr.name);
}

Result<Value> Interpreter::eval_items(const ItemsExpr& expr) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) {
    ZRT_TRY(Value value, eval(*item));
    items.push_back(std::move(value));
  }
  return expr.kind == ExprKind::kList ? list(std::move(items)) : tuple(std::move(items));
}

Result<Value> Interpreter::eval_dict(const DictExpr& expr) {
  Value dict = this->dict();
  for (const auto& [key_expr, value_expr] : expr.items) {
    ZRT_TRY(Value key, eval(*key_expr));
    ZRT_TRY(Value value, eval(*value_expr));
    ZRT_CHECK_OK(dict_set(*this, dict.as<DictObject>(), key, std::move(value)));
  }
  return dict;
}

Result<Value> Interpreter::eval_logic(const ItemsExpr& expr) {
  Value value;
  for (const ExprPtr& item : expr.items) {
    ZRT_TRY(value, eval(*item));
    if (truthy(value) != expr.is_and) return value;
  }
  return value;
}

Result<Value> Interpreter::eval_conditional(const ConditionalExpr& expr) {
  ZRT_TRY(Value test, eval(*expr.test));
  if (truthy(test)) return eval(*expr.then);
  if (expr.otherwise) return eval(*expr.otherwise);
  return undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", expr.line));
}

Result<Value> Interpreter::eval_compare(const CompareExpr& expr) {
  ZRT_TRY(Value left, eval(*expr.first));
  for (const auto& [op, operand] : expr.rest) {
    ZRT_TRY(Value right, eval(*operand));
    ZRT_TRY(bool holds, compare(*this, op, left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::eval_binary(const BinaryExpr& expr) {
  ZRT_TRY(Value left, eval(*expr.first));
  for (const auto& [op, operand] : expr.rest) {
    ZRT_TRY(Value right, eval(*operand));
    ZRT_TRY(left, binary(*this, op, left, right));
  }
  return left;
}

Result<Value> Interpreter::eval_concat(const ItemsExpr& expr) {
  std::vector<Value> items;
  for (const ExprPtr& item : expr.items) {
    ZRT_TRY(Value value, eval(*item));
    items.push_back(std::move(value));
  }
  MarkedText text;
  for (const Value& item : items) ZRT_CHECK_OK(append_str(*this, text, item));
  return str(std::move(text));
}

Result<Value> Interpreter::eval_unary(const UnaryExpr& expr) {
  ZRT_TRY(Value operand, eval(*expr.operand));
  if (expr.kind == ExprKind::kNot) return Value::boolean(!truthy(operand));
  return expr.kind == ExprKind::kNegate ? negate(*this, operand) : plus(*this, operand);
}

Result<Value> Interpreter::eval_slice(const SliceExpr& expr) {
  ZRT_TRY(Value object, eval(*expr.object));
  Value start, stop, step;
  if (expr.start) {
    ZRT_TRY(start, eval(*expr.start));
  }
  if (expr.stop) {
    ZRT_TRY(stop, eval(*expr.stop));
  }
  if (expr.step) {
    ZRT_TRY(step, eval(*expr.step));
  }
  return get_slice(*this, object, start, stop, step);
}

Status Interpreter::eval_starred(const Arguments& arguments, Args& out) {
  if (arguments.star) {
    ZRT_TRY(Value star, eval(*arguments.star));
    if (!is_iterable(star)) return raise("argument after * must be an iterable, not {}", type_name(star));
    ZRT_TRY(std::vector<Value> items, to_vector(*this, star));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  if (arguments.double_star) {
    ZRT_TRY(Value mapping, eval(*arguments.double_star));
    if (!mapping.is(Kind::kDict)) return raise("argument after ** must be a mapping, not {}", type_name(mapping));
    for (const auto& [key, value] : mapping.as<DictObject>().items) {
      if (over(1 + out.named.size() / 16)) return limit_error();
      if (!key.is_str()) return raise("keywords must be strings");
      for (const auto& [name, given] : out.named) {
        if (name == key.text()) return raise("got multiple values for keyword argument '{}'", name);
      }
      out.named.emplace_back(key.text(), value);
      out.has_foreign_names = out.has_foreign_names || key.view().has_marks();
    }
  }
  return {};
}

Result<Args> Interpreter::eval_arguments(const Arguments& arguments) {
  Args out;
  out.positional.reserve(arguments.positional.size());
  for (const ExprPtr& arg : arguments.positional) {
    ZRT_TRY(Value value, eval(*arg));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, arg] : arguments.named) {
    ZRT_TRY(Value value, eval(*arg));
    out.named.emplace_back(name, std::move(value));
  }
  if (arguments.star || arguments.double_star) ZRT_CHECK_OK(eval_starred(arguments, out));
  return out;
}

// Evaluates a call. `caller` is the macro that a call block passes to the called macro; missing in a plain call.
Result<Value> Interpreter::eval_call(const CallExpr& expr, const Value& caller) {
  const Builtin* method = nullptr;
  Value callee;
  if (expr.callee->kind == ExprKind::kAttribute) {
    // A method that is called at once, as in text.strip(), needs no method object.
    const auto& attribute = static_cast<const AttributeExpr&>(*expr.callee);
    ZRT_TRY(callee, eval(*attribute.object));
    bool forbidden = false;
    bool plain = callee.is_str() || callee.is(Kind::kDict) || callee.is(Kind::kList);
    if (plain) method = find_method(callee, attribute.name.text(), forbidden);
    if (forbidden) method = nullptr;
    if (method == nullptr) {
      ZRT_TRY(callee, get_attribute(*this, callee, attribute.name));
    }
  } else {
    ZRT_TRY(callee, eval(*expr.callee));
  }
  ZRT_TRY(Args args, eval_arguments(expr.arguments));
  if (!caller.is_missing()) args.named.emplace_back("caller", caller);
  int line = std::exchange(line_, expr.line);
  Result<Value> result = method != nullptr ? method->call(*this, callee, args) : call(callee, args);
  if (result) line_ = line;
  return result;
}

Result<Value> Interpreter::eval_apply(const ApplyExpr& expr) {
  Value operand;
  if (expr.operand) {
    ZRT_TRY(operand, eval(*expr.operand));
  } else {
    operand = std::move(block_text_);
  }
  if (expr.function == nullptr) {
    line_ = expr.line;
    return raise("No {} named '{}' found.", expr.kind == ExprKind::kFilter ? "filter" : "test", expr.name);
  }
  ZRT_TRY(Args args, eval_arguments(expr.arguments));
  int line = std::exchange(line_, expr.line);
  Result<Value> result = expr.function->call(*this, operand, args);
  if (result) line_ = line;
  return result;
}

}  // namespace zinc_rt::jinja
