#include <algorithm>

#include "jinja/parser.h"

namespace zinc_rt::jinja {

namespace {

constexpr std::string_view kLoading[] = {"include", "import", "from", "extends"};

}  // namespace

Result<Body> Parser::parse() {
  return parse_body({});
}

// Parses statements up to one of the end tags. The current token is then the tag's name. Without end tags, parses up to
// the template's end.
Result<Body> Parser::parse_body(Names end_names) {
  Nested nested(*this);
  ZRT_CHECK_OK(enter());
  Body body;
  for (;;) {
    const Token& token = current();
    switch (token.type) {
      case Tok::kData:
        body.push_back(std::make_unique<DataStmt>(token.line, token.text));
        take();
        break;
      case Tok::kVariableBegin: {
        auto output = std::make_unique<OutputStmt>(take().line);
        ZRT_TRY(ExprPtr expr, parse_tuple(TupleMode::kFull));
        output->items.push_back(std::move(expr));
        ZRT_CHECK_OK(expect(Tok::kVariableEnd));
        body.push_back(std::move(output));
        break;
      }
      case Tok::kBlockBegin: {
        take();
        bool ends = std::any_of(end_names.begin(), end_names.end(), [&](auto name) { return current().is_name(name); });
        if (ends) return body;
        ZRT_TRY(StmtPtr statement, parse_statement());
        body.push_back(std::move(statement));
        ZRT_CHECK_OK(expect(Tok::kBlockEnd));
        break;
      }
      default:
        if (token.type != Tok::kEof) return unexpected_token();
        if (end_names.size() == 0) return body;
        return error(token.line, "unexpected end of template, looking for '{}'", *(end_names.end() - 1));
    }
  }
}

// Parses the rest of an opening tag and the body after it.
Result<Body> Parser::parse_block_body(Names end_names, bool drop_end) {
  skip_op(":");
  ZRT_CHECK_OK(expect(Tok::kBlockEnd));
  ZRT_TRY(Body body, parse_body(end_names));
  if (drop_end) take();
  return body;
}

Result<StmtPtr> Parser::parse_statement() {
  const Token& token = current();
  if (token.type != Tok::kName) return error(token.line, "tag name expected");
  const std::string& tag = token.text;
  if (tag == "for") return parse_for();
  if (tag == "if") return parse_if();
  if (tag == "set") return parse_set();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call_block();
  if (tag == "filter") return parse_filter_block();
  if (tag == "with") return parse_with();
  if (tag == "block") return parse_block();
  if (tag == "print") return parse_print();
  if (tag == "generation") return parse_generation();
  if (tag == "break") return parse_loop_control(StmtKind::kBreak);
  if (tag == "continue") return parse_loop_control(StmtKind::kContinue);
  if (tag == "autoescape") return error(token.line, "the tag 'autoescape' is not supported");
  if (std::find(std::begin(kLoading), std::end(kLoading), tag) != std::end(kLoading)) {
    return error(token.line, "the tag '{}' is not supported: a chat template cannot load other templates", tag);
  }
  return error(token.line, "Encountered unknown tag '{}'.", tag);
}

Result<StmtPtr> Parser::parse_for() {
  auto loop = std::make_unique<ForStmt>(take().line);
  ZRT_TRY(loop->target, parse_target("in", false));
  loop->test_target = loop->target;
  if (!skip_name("in")) return error(current().line, "expected token 'in', got {}", describe(current()));
  ZRT_TRY(loop->iterable, parse_tuple(TupleMode::kNoConditional, "recursive"));
  if (skip_name("if")) {
    ZRT_TRY(loop->test, parse_expression());
  }
  loop->recursive = skip_name("recursive");
  ++loops_;
  auto body = parse_block_body({"else", "endfor"}, false);
  --loops_;
  if (!body) return std::unexpected(body.error());
  loop->body = std::move(*body);
  if (take().text == "else") {
    loop->has_else = true;
    int outer = loops_;
    // A recursive loop is a function, and its else block is a part of this function. A break cannot leave a function.
    // So a break in the else block cannot end a loop around this loop, and the loops around it do not count here.
    if (loop->recursive) loops_ = 0;
    auto otherwise = parse_block_body({"endfor"}, true);
    loops_ = outer;
    if (!otherwise) return std::unexpected(otherwise.error());
    loop->otherwise = std::move(*otherwise);
  }
  return loop;
}

Result<StmtPtr> Parser::parse_if() {
  auto branch = std::make_unique<IfStmt>(take().line);
  for (;;) {
    ZRT_TRY(ExprPtr test, parse_tuple(TupleMode::kNoConditional));
    ZRT_TRY(Body body, parse_block_body({"elif", "else", "endif"}, false));
    branch->branches.emplace_back(std::move(test), std::move(body));
    const std::string& word = take().text;
    if (word == "elif") continue;
    if (word == "else") {
      ZRT_TRY(branch->otherwise, parse_block_body({"endif"}, true));
    }
    return branch;
  }
}

Result<StmtPtr> Parser::parse_set() {
  int line = take().line;
  ZRT_TRY(Target target, parse_target({}, true));
  if (skip_op("=")) {
    auto set = std::make_unique<SetStmt>(line);
    set->target = std::move(target);
    ZRT_TRY(set->value, parse_tuple(TupleMode::kFull));
    return set;
  }
  auto set = std::make_unique<BlockStmt>(StmtKind::kSetBlock, line);
  set->target = std::move(target);
  if (current().is_operator("|")) {
    ZRT_TRY(set->filter, parse_filter(nullptr, false));
  }
  ZRT_TRY(set->body, parse_block_body({"endset"}, true));
  return set;
}

Result<StmtPtr> Parser::parse_with() {
  auto with = std::make_unique<BlockStmt>(StmtKind::kWith, take().line);
  while (current().type != Tok::kBlockEnd) {
    if (!with->bindings.empty()) ZRT_CHECK_OK(expect_op(","));
    ZRT_TRY(Target target, parse_target({}, false));
    ZRT_CHECK_OK(expect_op("="));
    ZRT_TRY(ExprPtr value, parse_expression());
    with->bindings.emplace_back(std::move(target), std::move(value));
  }
  ZRT_TRY(with->body, parse_block_body({"endwith"}, true));
  return with;
}

// Parses a block statement. This engine has no template inheritance, so a block statement only runs its body in a scope
// of its own.
Result<StmtPtr> Parser::parse_block() {
  auto block = std::make_unique<BlockStmt>(StmtKind::kScoped, take().line);
  ZRT_TRY(Value name, expect_name());
  skip_name("scoped");
  int outer = std::exchange(loops_, 0);
  auto body = parse_block_body({"endblock"}, true);
  loops_ = outer;
  if (!body) return std::unexpected(body.error());
  block->body = std::move(*body);
  skip_name(name.text());
  return block;
}

Status Parser::parse_signature(MacroStmt& macro) {
  ZRT_CHECK_OK(expect_op("("));
  while (!current().is_operator(")")) {
    if (!macro.parameters.empty()) ZRT_CHECK_OK(expect_op(","));
    int line = current().line;
    MacroParameter parameter;
    ZRT_TRY(parameter.name, expect_name());
    for (const MacroParameter& other : macro.parameters) {
      if (other.name.text() == parameter.name.text()) return error(line, "duplicate argument '{}'", other.name.text());
    }
    if (skip_op("=")) {
      ZRT_TRY(parameter.otherwise, parse_expression());
    } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
      return error(line, "non-default argument follows default argument");
    }
    macro.proto.arguments.push_back(parameter.name.text());
    macro.parameters.push_back(std::move(parameter));
  }
  return expect_op(")");
}

Status Parser::parse_macro_body(MacroStmt& macro, std::string_view end_name) {
  int outer = std::exchange(loops_, 0);
  auto body = parse_block_body({end_name}, true);
  loops_ = outer;
  if (!body) return std::unexpected(body.error());
  macro.body = std::move(*body);
  return {};
}

Result<StmtPtr> Parser::parse_macro() {
  auto macro = std::make_unique<MacroStmt>(StmtKind::kMacro, take().line);
  ZRT_TRY(macro->name, expect_name());
  macro->proto.name = macro->name.text();
  ZRT_CHECK_OK(parse_signature(*macro));
  ZRT_CHECK_OK(parse_macro_body(*macro, "endmacro"));
  return macro;
}

Result<StmtPtr> Parser::parse_call_block() {
  auto block = std::make_unique<MacroStmt>(StmtKind::kCallBlock, take().line);
  if (current().is_operator("(")) ZRT_CHECK_OK(parse_signature(*block));
  ZRT_TRY(block->call, parse_expression());
  if (block->call->kind != ExprKind::kCall) return error(block->line, "expected call");
  ZRT_CHECK_OK(parse_macro_body(*block, "endcall"));
  return block;
}

Result<StmtPtr> Parser::parse_generation() {
  auto block = std::make_unique<MacroStmt>(StmtKind::kGeneration, take().line);
  ZRT_CHECK_OK(parse_macro_body(*block, "endgeneration"));
  return block;
}

Result<StmtPtr> Parser::parse_filter_block() {
  auto block = std::make_unique<BlockStmt>(StmtKind::kFilterBlock, take().line);
  ZRT_TRY(block->filter, parse_filter(nullptr, true));
  ZRT_TRY(block->body, parse_block_body({"endfilter"}, true));
  return block;
}

Result<StmtPtr> Parser::parse_print() {
  auto output = std::make_unique<OutputStmt>(take().line);
  while (current().type != Tok::kBlockEnd) {
    if (!output->items.empty()) ZRT_CHECK_OK(expect_op(","));
    ZRT_TRY(ExprPtr expr, parse_expression());
    output->items.push_back(std::move(expr));
  }
  return output;
}

Result<StmtPtr> Parser::parse_loop_control(StmtKind kind) {
  const Token& token = take();
  if (loops_ == 0) return error(token.line, "'{}' outside loop", token.text);
  return std::make_unique<Stmt>(kind, token.line);
}

Result<Target> Parser::parse_target_item(bool with_namespace) {
  Nested nested(*this);
  ZRT_CHECK_OK(enter());
  int line = current().line;
  if (skip_op("(")) {
    ZRT_TRY(Target inner, parse_target({}, false));
    ZRT_CHECK_OK(expect_op(")"));
    return inner;
  }
  Target target;
  target.line = line;
  ZRT_TRY(target.name, expect_name());
  const std::string& text = target.name.text();
  for (std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (text == constant) return error(line, "can't assign to 'const'");
  }
  if (with_namespace && skip_op(".")) {
    target.kind = Target::Kind::kNamespaceAttribute;
    ZRT_TRY(target.attribute, expect_name());
  } else if (current().is_operator(".") || current().is_operator("[")) {
    return error(line, "can't assign to an attribute or item; only attributes of a namespace can be set");
  }
  return target;
}

Result<Target> Parser::parse_target(std::string_view end_name, bool with_namespace) {
  Target tuple;
  tuple.kind = Target::Kind::kTuple;
  tuple.line = current().line;
  bool is_tuple = false;
  for (;;) {
    if (!tuple.items.empty()) ZRT_CHECK_OK(expect_op(","));
    if (tuple_ends(end_name) || current().is_operator("=")) break;
    ZRT_TRY(Target item, parse_target_item(with_namespace));
    tuple.items.push_back(std::move(item));
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (tuple.items.empty()) return error(tuple.line, "Expected an expression, got {}", describe(current()));
  return std::move(tuple.items[0]);
}

}  // namespace zinc_rt::jinja
