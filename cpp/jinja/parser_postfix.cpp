// Parses attributes, subscripts, calls, filters and tests.
#include <algorithm>

#include "jinja/parser.h"

namespace zinc_rt::jinja {

Result<ExprPtr> Parser::parse_postfix(ExprPtr expr) {
  for (;;) {
    if (current().is_operator(".") || current().is_operator("[")) {
      ZRT_TRY(expr, parse_subscript(std::move(expr)));
    } else if (current().is_operator("(")) {
      ZRT_TRY(expr, parse_call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> Parser::parse_filters_and_tests(ExprPtr expr) {
  for (;;) {
    if (current().is_operator("|")) {
      ZRT_TRY(expr, parse_filter(std::move(expr), false));
    } else if (current().is_name("is")) {
      ZRT_TRY(expr, parse_test(std::move(expr)));
    } else if (current().is_operator("(")) {
      ZRT_TRY(expr, parse_call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> Parser::parse_subscript(ExprPtr object) {
  int line = current().line;
  if (take().text == "[") return parse_bracket(std::move(object), line);
  std::size_t depth = object->depth;
  const Token& member = take();
  if (member.type == Tok::kName) {
    return checked(std::make_unique<AttributeExpr>(line, std::move(object), constants_.str(member.text)), depth);
  }
  if (member.type != Tok::kInteger) return error(member.line, "expected name or number");
  auto key = std::make_unique<ConstExpr>(line, Value::integer(member.integer));
  return checked(std::make_unique<ItemExpr>(line, std::move(object), std::move(key)), depth);
}

Result<ExprPtr> Parser::parse_bracket(ExprPtr object, int line) {
  auto slice = std::make_unique<SliceExpr>(line);
  std::vector<ExprPtr> keys;
  bool is_slice = false;
  std::size_t depth = object->depth;
  std::size_t n_parts = 0;
  while (!current().is_operator("]")) {
    if (n_parts++ > 0) ZRT_CHECK_OK(expect_op(","));
    ExprPtr start;
    if (!current().is_operator(":")) {
      ZRT_TRY(start, parse_expression());
      depth = std::max<std::size_t>(depth, start->depth);
      if (!current().is_operator(":")) {
        keys.push_back(std::move(start));
        continue;
      }
    }
    take();
    is_slice = true;
    slice->start = std::move(start);
    auto part_ends = [&] { return current().is_operator("]") || current().is_operator(","); };
    if (!current().is_operator(":") && !part_ends()) {
      ZRT_TRY(slice->stop, parse_expression());
      depth = std::max<std::size_t>(depth, slice->stop->depth);
    }
    if (skip_op(":") && !part_ends()) {
      ZRT_TRY(slice->step, parse_expression());
      depth = std::max<std::size_t>(depth, slice->step->depth);
    }
  }
  ZRT_CHECK_OK(expect_op("]"));
  if (is_slice) {
    if (n_parts > 1) return error(line, "a subscript with several slices is not supported");
    slice->object = std::move(object);
    return checked(std::move(slice), depth);
  }
  if (keys.size() == 1) return checked(std::make_unique<ItemExpr>(line, std::move(object), std::move(keys[0])), depth);
  auto tuple = std::make_unique<ItemsExpr>(ExprKind::kTuple, line);
  tuple->items = std::move(keys);
  ZRT_TRY(ExprPtr key, checked(std::move(tuple), depth));
  return checked(std::make_unique<ItemExpr>(line, std::move(object), std::move(key)), depth + 1);
}

Result<Arguments> Parser::parse_arguments() {
  int line = current().line;
  ZRT_CHECK_OK(expect_op("("));
  Arguments out;
  bool need_comma = false;
  auto invalid = [&] { return error(line, "invalid syntax for function call expression"); };
  while (!current().is_operator(")")) {
    if (need_comma) {
      ZRT_CHECK_OK(expect_op(","));
      if (current().is_operator(")")) break;
    }
    need_comma = true;
    if (skip_op("*")) {
      if (out.star || out.double_star) return invalid();
      ZRT_TRY(out.star, parse_expression());
    } else if (skip_op("**")) {
      if (out.double_star) return invalid();
      ZRT_TRY(out.double_star, parse_expression());
    } else if (current().type == Tok::kName && look().is_operator("=")) {
      if (out.double_star) return invalid();
      std::string name = take().text;
      take();
      ZRT_TRY(ExprPtr value, parse_expression());
      auto same = [&](const auto& given) { return given.first == name; };
      if (std::any_of(out.named.begin(), out.named.end(), same)) {
        return error(line, "keyword argument repeated: {}", name);
      }
      out.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (out.star || out.double_star || !out.named.empty()) return invalid();
      ZRT_TRY(ExprPtr value, parse_expression());
      out.positional.push_back(std::move(value));
    }
  }
  ZRT_CHECK_OK(expect_op(")"));
  return out;
}

Result<ExprPtr> Parser::parse_call(ExprPtr callee) {
  int line = current().line;
  std::size_t depth = callee->depth;
  auto call = std::make_unique<CallExpr>(line, std::move(callee));
  ZRT_TRY(call->arguments, parse_arguments());
  depth = std::max(depth, depth_of(call->arguments));
  return checked(std::move(call), depth);
}

Result<std::string> Parser::parse_dotted_name() {
  ZRT_TRY(Value name, expect_name());
  std::string text = name.text();
  while (skip_op(".")) {
    ZRT_TRY(Value part, expect_name());
    text += "." + part.text();
  }
  return text;
}

Result<ExprPtr> Parser::parse_filter(ExprPtr operand, bool start_inline) {
  while (current().is_operator("|") || start_inline) {
    if (!start_inline) take();
    start_inline = false;
    auto filter = std::make_unique<ApplyExpr>(ExprKind::kFilter, current().line);
    ZRT_TRY(filter->name, parse_dotted_name());
    std::size_t depth = operand ? operand->depth : 0;
    filter->operand = std::move(operand);
    if (current().is_operator("(")) {
      ZRT_TRY(filter->arguments, parse_arguments());
      depth = std::max(depth, depth_of(filter->arguments));
    }
    filter->function = find_filter(filter->name);
    ZRT_TRY(operand, checked(std::move(filter), depth));
  }
  return operand;
}

Result<ExprPtr> Parser::parse_test(ExprPtr operand) {
  int line = take().line;
  bool negated = skip_name("not");
  auto test = std::make_unique<ApplyExpr>(ExprKind::kTest, line);
  ZRT_TRY(test->name, parse_dotted_name());
  std::size_t depth = operand->depth;
  test->operand = std::move(operand);
  const Token& next = current();
  bool starts_argument = next.type == Tok::kName || next.type == Tok::kString || next.type == Tok::kInteger ||
                         next.type == Tok::kFloat || next.is_operator("[") || next.is_operator("{");
  bool is_word = next.is_name("else") || next.is_name("or") || next.is_name("and");
  if (next.is_operator("(")) {
    ZRT_TRY(test->arguments, parse_arguments());
  } else if (starts_argument && !is_word) {
    if (next.is_name("is")) return error(next.line, "You cannot chain multiple tests with is");
    Nested nested(*this);
    ZRT_CHECK_OK(enter());
    ZRT_TRY(ExprPtr argument, parse_primary());
    ZRT_TRY(argument, parse_postfix(std::move(argument)));
    test->arguments.positional.push_back(std::move(argument));
  }
  depth = std::max(depth, depth_of(test->arguments));
  test->function = find_test(test->name);
  ZRT_TRY(ExprPtr result, checked(std::move(test), depth));
  if (!negated) return result;
  depth = result->depth;
  return checked(std::make_unique<UnaryExpr>(ExprKind::kNot, line, std::move(result)), depth);
}

}  // namespace zinc_rt::jinja
