// Parser turns tokens into a tree by Jinja's grammar. parser.cpp and parser_postfix.cpp parse expressions,
// parser_stmt.cpp parses statements.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace zinc_rt::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, ConstantPool& constants);
  Result<Body> parse();

 private:
  using Names = std::initializer_list<std::string_view>;
  enum class TupleMode { kFull, kNoConditional, kParenthesized };

  template <class... Args>
  std::unexpected<Error> error(int line, fmt::format_string<Args...> format, Args&&... args) const {
    return fail(StatusCode::kInvalidArgument, "[chat_template] line {}: {}", line,
                fmt::format(format, std::forward<Args>(args)...));
  }
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take();
  bool skip_name(std::string_view name);
  bool skip_op(std::string_view op);
  Status expect_op(std::string_view op);
  Status expect(Tok type);
  Result<Value> expect_name();
  std::unexpected<Error> unexpected_token() const;
  Status enter();  // begins a level of nesting; fails if the levels exceed the limit; a Nested object ends the level
  Result<ExprPtr> checked(ExprPtr expr, std::size_t depth_below);

  struct Nested {
    explicit Nested(Parser& p) : parser(p) {}
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };

  // The following functions parse expressions. Each function parses one level of precedence or one kind of expression.
  Result<ExprPtr> parse_expression(bool with_conditional = true);
  Result<ExprPtr> parse_conditional();
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_power();
  Result<ExprPtr> parse_unary(bool with_filter);
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_tuple(TupleMode mode, std::string_view end_name = {});
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_postfix(ExprPtr expr);
  Result<ExprPtr> parse_filters_and_tests(ExprPtr expr);
  Result<ExprPtr> parse_subscript(ExprPtr object);
  Result<ExprPtr> parse_bracket(ExprPtr object, int line);
  Result<ExprPtr> parse_call(ExprPtr callee);
  Result<ExprPtr> parse_filter(ExprPtr operand, bool start_inline);
  Result<ExprPtr> parse_test(ExprPtr operand);
  Result<Arguments> parse_arguments();
  Result<std::string> parse_dotted_name();
  std::size_t depth_of(const Arguments& arguments) const;
  bool tuple_ends(std::string_view end_name) const;
  template <class Next>
  Result<ExprPtr> parse_logic(bool is_and, Next next);

  // The following functions parse statements.
  Result<Body> parse_body(Names end_names);
  Result<Body> parse_block_body(Names end_names, bool drop_end);
  Result<StmtPtr> parse_statement();
  Result<StmtPtr> parse_for();
  Result<StmtPtr> parse_if();
  Result<StmtPtr> parse_set();
  Result<StmtPtr> parse_with();
  Result<StmtPtr> parse_block();
  Result<StmtPtr> parse_macro();
  Result<StmtPtr> parse_call_block();
  Result<StmtPtr> parse_filter_block();
  Result<StmtPtr> parse_generation();
  Result<StmtPtr> parse_print();
  Result<StmtPtr> parse_loop_control(StmtKind kind);
  Status parse_signature(MacroStmt& macro);
  Status parse_macro_body(MacroStmt& macro, std::string_view end_name);
  Result<Target> parse_target(std::string_view end_name, bool with_namespace);
  Result<Target> parse_target_item(bool with_namespace);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  ConstantPool& constants_;
  int depth_ = 0;
  int loops_ = 0;  // number of enclosing for statements that a break at this place could end
  std::uintptr_t stack_start_;
};

}  // namespace zinc_rt::jinja
