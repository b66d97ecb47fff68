#include "jinja/parser.h"

#include <algorithm>

namespace zinc_rt::jinja {

namespace {

// Brackets, blocks and unary operators may be nested at most this deep.
constexpr int kMaxNesting = 200;
// The tree of one expression, including chains of filters and attributes, may be at most this deep.
constexpr std::size_t kMaxTreeDepth = 400;

std::size_t depth_of(const ExprPtr& expr) {
  return expr ? expr->depth : 0;
}

std::optional<CompareOp> compare_op(const Token& token) {
  if (token.type != Tok::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEq;
  if (token.text == "!=") return CompareOp::kNe;
  if (token.text == "<") return CompareOp::kLt;
  if (token.text == "<=") return CompareOp::kLe;
  if (token.text == ">") return CompareOp::kGt;
  if (token.text == ">=") return CompareOp::kGe;
  return std::nullopt;
}

}  // namespace

Parser::Parser(std::vector<Token> tokens, ConstantPool& constants)
    : tokens_(std::move(tokens)), constants_(constants), stack_start_(stack_position()) {}

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

bool Parser::skip_op(std::string_view op) {
  if (!current().is_operator(op)) return false;
  take();
  return true;
}

Status Parser::expect_op(std::string_view op) {
  if (skip_op(op)) return {};
  return error(current().line, "expected token '{}', got {}", op, describe(current()));
}

Status Parser::expect(Tok type) {
  if (current().type == type) {
    take();
    return {};
  }
  return error(current().line, "expected token {}, got {}", describe(Token{type, 0, "name"}), describe(current()));
}

Result<Value> Parser::expect_name() {
  if (current().type != Tok::kName) return error(current().line, "expected a name, got {}", describe(current()));
  return constants_.str(take().text);
}

std::unexpected<Error> Parser::unexpected_token() const {
  return error(current().line, "unexpected {}", describe(current()));
}

Status Parser::enter() {
  ++depth_;
  std::uintptr_t here = stack_position();
  std::uintptr_t used = here < stack_start_ ? stack_start_ - here : here - stack_start_;
  if (depth_ > kMaxNesting || used > kMaxStackBytes) {
    return fail(StatusCode::kExhausted, "[chat_template] line {}: nested too deep ({} allowed)", current().line,
                kMaxNesting);
  }
  return {};
}

Result<ExprPtr> Parser::checked(ExprPtr expr, std::size_t depth_below) {
  if (depth_below + 1 > kMaxTreeDepth) {
    return fail(StatusCode::kExhausted, "[chat_template] line {}: the expression is {} levels deep, {} allowed",
                expr->line, depth_below + 1, kMaxTreeDepth);
  }
  expr->depth = static_cast<std::uint16_t>(depth_below + 1);
  return expr;
}

std::size_t Parser::depth_of(const Arguments& arguments) const {
  std::size_t depth = std::max(jinja::depth_of(arguments.star), jinja::depth_of(arguments.double_star));
  for (const ExprPtr& arg : arguments.positional) depth = std::max(depth, jinja::depth_of(arg));
  for (const auto& [name, arg] : arguments.named) depth = std::max(depth, jinja::depth_of(arg));
  return depth;
}

Result<ExprPtr> Parser::parse_expression(bool with_conditional) {
  Nested nested(*this);
  ZRT_CHECK_OK(enter());
  return with_conditional ? parse_conditional() : parse_or();
}

Result<ExprPtr> Parser::parse_conditional() {
  int line = current().line;
  ZRT_TRY(ExprPtr expr, parse_or());
  while (skip_name("if")) {
    auto conditional = std::make_unique<ConditionalExpr>(line);
    conditional->then = std::move(expr);
    ZRT_TRY(conditional->test, parse_or());
    if (skip_name("else")) {
      ZRT_TRY(conditional->otherwise, parse_expression());
    }
    std::size_t depth = std::max({jinja::depth_of(conditional->then), jinja::depth_of(conditional->test),
                                  jinja::depth_of(conditional->otherwise)});
    ZRT_TRY(expr, checked(std::move(conditional), depth));
    line = current().line;
  }
  return expr;
}

template <class Next>
Result<ExprPtr> Parser::parse_logic(bool is_and, Next next) {
  int line = current().line;
  ZRT_TRY(ExprPtr first, next());
  std::string_view word = is_and ? "and" : "or";
  if (!current().is_name(word)) return first;
  auto logic = std::make_unique<ItemsExpr>(ExprKind::kLogic, line);
  logic->is_and = is_and;
  std::size_t depth = first->depth;
  logic->items.push_back(std::move(first));
  while (skip_name(word)) {
    ZRT_TRY(ExprPtr item, next());
    depth = std::max<std::size_t>(depth, item->depth);
    logic->items.push_back(std::move(item));
  }
  return checked(std::move(logic), depth);
}

Result<ExprPtr> Parser::parse_or() {
  return parse_logic(false, [this] { return parse_and(); });
}

Result<ExprPtr> Parser::parse_and() {
  return parse_logic(true, [this] { return parse_not(); });
}

Result<ExprPtr> Parser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  int line = take().line;
  Nested nested(*this);
  ZRT_CHECK_OK(enter());
  ZRT_TRY(ExprPtr operand, parse_not());
  std::size_t depth = operand->depth;
  return checked(std::make_unique<UnaryExpr>(ExprKind::kNot, line, std::move(operand)), depth);
}

Result<ExprPtr> Parser::parse_compare() {
  int line = current().line;
  ZRT_TRY(ExprPtr first, parse_sum());
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
  std::size_t depth = first->depth;
  for (;;) {
    std::optional<CompareOp> op = compare_op(current());
    if (op) {
      take();
    } else if (skip_name("in")) {
      op = CompareOp::kIn;
    } else if (current().is_name("not") && look().is_name("in")) {
      take();
      take();
      op = CompareOp::kNotIn;
    } else {
      break;
    }
    ZRT_TRY(ExprPtr operand, parse_sum());
    depth = std::max<std::size_t>(depth, operand->depth);
    rest.emplace_back(*op, std::move(operand));
  }
  if (rest.empty()) return first;
  auto compare = std::make_unique<CompareExpr>(line);
  compare->first = std::move(first);
  compare->rest = std::move(rest);
  return checked(std::move(compare), depth);
}

Result<ExprPtr> Parser::parse_sum() {
  int line = current().line;
  ZRT_TRY(ExprPtr first, parse_concat());
  if (!current().is_operator("+") && !current().is_operator("-")) return first;
  auto sum = std::make_unique<BinaryExpr>(line);
  std::size_t depth = first->depth;
  sum->first = std::move(first);
  while (current().is_operator("+") || current().is_operator("-")) {
    BinaryOp op = take().text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
    ZRT_TRY(ExprPtr operand, parse_concat());
    depth = std::max<std::size_t>(depth, operand->depth);
    sum->rest.emplace_back(op, std::move(operand));
  }
  return checked(std::move(sum), depth);
}

Result<ExprPtr> Parser::parse_concat() {
  int line = current().line;
  ZRT_TRY(ExprPtr first, parse_product());
  if (!current().is_operator("~")) return first;
  auto concat = std::make_unique<ItemsExpr>(ExprKind::kConcat, line);
  std::size_t depth = first->depth;
  concat->items.push_back(std::move(first));
  while (skip_op("~")) {
    ZRT_TRY(ExprPtr item, parse_product());
    depth = std::max<std::size_t>(depth, item->depth);
    concat->items.push_back(std::move(item));
  }
  return checked(std::move(concat), depth);
}

Result<ExprPtr> Parser::parse_product() {
  auto op_of = [](const Token& token) -> std::optional<BinaryOp> {
    if (token.is_operator("*")) return BinaryOp::kMul;
    if (token.is_operator("/")) return BinaryOp::kDiv;
    if (token.is_operator("//")) return BinaryOp::kFloorDiv;
    if (token.is_operator("%")) return BinaryOp::kMod;
    return std::nullopt;
  };
  int line = current().line;
  ZRT_TRY(ExprPtr first, parse_power());
  if (!op_of(current())) return first;
  auto product = std::make_unique<BinaryExpr>(line);
  std::size_t depth = first->depth;
  product->first = std::move(first);
  while (auto op = op_of(current())) {
    take();
    ZRT_TRY(ExprPtr operand, parse_power());
    depth = std::max<std::size_t>(depth, operand->depth);
    product->rest.emplace_back(*op, std::move(operand));
  }
  return checked(std::move(product), depth);
}

// Parses a chain of **. In Jinja it groups from the left, unlike Python's own ** operator.
Result<ExprPtr> Parser::parse_power() {
  int line = current().line;
  ZRT_TRY(ExprPtr first, parse_unary(true));
  if (!current().is_operator("**")) return first;
  auto power = std::make_unique<BinaryExpr>(line);
  std::size_t depth = first->depth;
  power->first = std::move(first);
  while (skip_op("**")) {
    ZRT_TRY(ExprPtr operand, parse_unary(true));
    depth = std::max<std::size_t>(depth, operand->depth);
    power->rest.emplace_back(BinaryOp::kPow, std::move(operand));
  }
  return checked(std::move(power), depth);
}

Result<ExprPtr> Parser::parse_unary(bool with_filter) {
  const Token& token = current();
  ExprPtr expr;
  if (token.is_operator("-") || token.is_operator("+")) {
    ExprKind kind = token.text == "-" ? ExprKind::kNegate : ExprKind::kPlus;
    int line = take().line;
    Nested nested(*this);
    ZRT_CHECK_OK(enter());
    ZRT_TRY(ExprPtr operand, parse_unary(false));
    std::size_t depth = operand->depth;
    ZRT_TRY(expr, checked(std::make_unique<UnaryExpr>(kind, line, std::move(operand)), depth));
  } else {
    ZRT_TRY(expr, parse_primary());
  }
  ZRT_TRY(expr, parse_postfix(std::move(expr)));
  if (!with_filter) return expr;
  return parse_filters_and_tests(std::move(expr));
}

Result<ExprPtr> Parser::parse_primary() {
  const Token& token = current();
  int line = token.line;
  auto constant = [&](Value value) -> ExprPtr { return std::make_unique<ConstExpr>(line, std::move(value)); };
  switch (token.type) {
    case Tok::kName: {
      const std::string& text = take().text;
      if (text == "true" || text == "True") return constant(Value::boolean(true));
      if (text == "false" || text == "False") return constant(Value::boolean(false));
      if (text == "none" || text == "None") return constant(Value::none());
      return std::make_unique<NameExpr>(line, constants_.str(text));
    }
    case Tok::kString: {
      std::string text = take().text;
      while (current().type == Tok::kString) text += take().text;
      return constant(constants_.str(std::move(text)));
    }
    case Tok::kInteger: return constant(Value::integer(take().integer));
    case Tok::kFloat: return constant(Value::real(take().real));
    case Tok::kOperator:
      if (token.text == "(") {
        take();
        Nested nested(*this);
        ZRT_CHECK_OK(enter());
        ZRT_TRY(ExprPtr tuple, parse_tuple(TupleMode::kParenthesized));
        ZRT_CHECK_OK(expect_op(")"));
        return tuple;
      }
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_dict();
      break;
    default: break;
  }
  return unexpected_token();
}

bool Parser::tuple_ends(std::string_view end_name) const {
  const Token& token = current();
  if (token.type == Tok::kVariableEnd || token.type == Tok::kBlockEnd || token.is_operator(")")) return true;
  return !end_name.empty() && token.is_name(end_name);
}

Result<ExprPtr> Parser::parse_tuple(TupleMode mode, std::string_view end_name) {
  int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  std::size_t depth = 0;
  for (;;) {
    if (!items.empty()) ZRT_CHECK_OK(expect_op(","));
    if (tuple_ends(end_name)) break;
    ZRT_TRY(ExprPtr item, parse_expression(mode != TupleMode::kNoConditional));
    depth = std::max<std::size_t>(depth, item->depth);
    items.push_back(std::move(item));
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (mode != TupleMode::kParenthesized) {
      return error(current().line, "Expected an expression, got {}", describe(current()));
    }
  }
  auto tuple = std::make_unique<ItemsExpr>(ExprKind::kTuple, line);
  tuple->items = std::move(items);
  return checked(std::move(tuple), depth);
}

Result<ExprPtr> Parser::parse_list() {
  auto list = std::make_unique<ItemsExpr>(ExprKind::kList, take().line);
  std::size_t depth = 0;
  while (!current().is_operator("]")) {
    if (!list->items.empty()) ZRT_CHECK_OK(expect_op(","));
    if (current().is_operator("]")) break;
    ZRT_TRY(ExprPtr item, parse_expression());
    depth = std::max<std::size_t>(depth, item->depth);
    list->items.push_back(std::move(item));
  }
  ZRT_CHECK_OK(expect_op("]"));
  return checked(std::move(list), depth);
}

Result<ExprPtr> Parser::parse_dict() {
  auto dict = std::make_unique<DictExpr>(take().line);
  std::size_t depth = 0;
  while (!current().is_operator("}")) {
    if (!dict->items.empty()) ZRT_CHECK_OK(expect_op(","));
    if (current().is_operator("}")) break;
    ZRT_TRY(ExprPtr key, parse_expression());
    ZRT_CHECK_OK(expect_op(":"));
    ZRT_TRY(ExprPtr value, parse_expression());
    depth = std::max<std::size_t>({depth, key->depth, value->depth});
    dict->items.emplace_back(std::move(key), std::move(value));
  }
  ZRT_CHECK_OK(expect_op("}"));
  return checked(std::move(dict), depth);
}

}  // namespace zinc_rt::jinja
