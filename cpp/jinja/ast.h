// Defines the tree of a parsed template. The parser builds it, then the scope pass (scope.h) fills in the slots of
// variables. After that it is read only, so several renders may use it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jinja/call.h"
#include "jinja/ops.h"
#include "jinja/value.h"

namespace zinc_rt::jinja {

enum class ExprKind : std::uint8_t {
  kConst,
  kName,
  kTuple,
  kList,
  kDict,
  kConditional,
  kLogic,
  kNot,
  kCompare,
  kBinary,
  kConcat,
  kNegate,
  kPlus,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
};

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  virtual ~Expr() = default;
  ExprKind kind;
  std::uint16_t depth = 1;  // depth of the tree below this node, including the node
  int line;
};
using ExprPtr = std::unique_ptr<Expr>;

// Says where a variable is stored: in slot `slot` of the activation of the function that is `hops` levels outward. An
// activation holds the variables of one run of a function.
struct SlotRef {
  int hops = 0;
  int slot = -1;
};

struct ConstExpr : Expr {
  ConstExpr(int line, Value v) : Expr(ExprKind::kConst, line), value(std::move(v)) {}
  Value value;
};

struct NameExpr : Expr {
  NameExpr(int line, Value n) : Expr(ExprKind::kName, line), name(std::move(n)) {}
  Value name;
  SlotRef ref;
};

// ItemsExpr is an expression with a list of parts: a tuple or list, a concatenation with ~, or a chain of `and` or
// `or`.
struct ItemsExpr : Expr {
  using Expr::Expr;
  std::vector<ExprPtr> items;
  bool is_and = false;
};

struct DictExpr : Expr {
  explicit DictExpr(int line) : Expr(ExprKind::kDict, line) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

struct ConditionalExpr : Expr {
  explicit ConditionalExpr(int line) : Expr(ExprKind::kConditional, line) {}
  ExprPtr test, then, otherwise;  // `otherwise` is null if the expression has no else part
};

// UnaryExpr is an expression with `not`, unary minus or unary plus.
struct UnaryExpr : Expr {
  UnaryExpr(ExprKind kind, int line, ExprPtr o) : Expr(kind, line), operand(std::move(o)) {}
  ExprPtr operand;
};

struct CompareExpr : Expr {
  explicit CompareExpr(int line) : Expr(ExprKind::kCompare, line) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

// BinaryExpr is a chain of left-associative operators of one precedence, such as a + b - c. It is stored as a list, so
// that a long chain does not become a deep tree.
struct BinaryExpr : Expr {
  explicit BinaryExpr(int line) : Expr(ExprKind::kBinary, line) {}
  ExprPtr first;
  std::vector<std::pair<BinaryOp, ExprPtr>> rest;
};

struct AttributeExpr : Expr {
  AttributeExpr(int line, ExprPtr o, Value n)
      : Expr(ExprKind::kAttribute, line), object(std::move(o)), name(std::move(n)) {}
  ExprPtr object;
  Value name;
};

struct ItemExpr : Expr {
  ItemExpr(int line, ExprPtr o, ExprPtr k) : Expr(ExprKind::kItem, line), object(std::move(o)), key(std::move(k)) {}
  ExprPtr object, key;
};

struct SliceExpr : Expr {
  explicit SliceExpr(int line) : Expr(ExprKind::kSlice, line) {}
  ExprPtr object, start, stop, step;  // all but `object` are null if absent
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, double_star;
};

struct CallExpr : Expr {
  CallExpr(int line, ExprPtr c) : Expr(ExprKind::kCall, line), callee(std::move(c)) {}
  ExprPtr callee;
  Arguments arguments;
};

// ApplyExpr applies a filter or a test. A filter without operand is applied to the text of its block.
struct ApplyExpr : Expr {
  using Expr::Expr;
  ExprPtr operand;
  std::string name;
  Arguments arguments;
  // Null if no such filter or test exists, which is an error only when the expression is evaluated.
  const Builtin* function = nullptr;
};

// Target is the left side of an assignment: a name, a namespace's attribute, or a tuple of such targets.
struct Target {
  enum class Kind : std::uint8_t { kName, kNamespaceAttribute, kTuple };
  Kind kind = Kind::kName;
  int line = 0;
  Value name;
  Value attribute;
  std::vector<Target> items;
  SlotRef ref;
};

// SlotLoad says how a variable gets its first value when its scope is entered: from the context (kContext), from the
// variable of the same name in the enclosing scope (kAlias), or not at all (kMissing).
struct SlotLoad {
  enum class Kind : std::uint8_t { kContext, kAlias, kMissing };
  Kind kind;
  int slot;
  SlotRef from;  // the variable that is copied, for kAlias
  Value name;    // the name that is looked up, for kContext
};
struct Scope {
  std::vector<SlotLoad> loads;
  std::vector<int> slots;  // all slots of the scope, which are cleared when the scope ends
};

enum class StmtKind : std::uint8_t {
  kData,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScoped,
  kGeneration,
  kBreak,
  kContinue,
};

struct Stmt {
  Stmt(StmtKind k, int l) : kind(k), line(l) {}
  virtual ~Stmt() = default;
  StmtKind kind;
  int line;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct DataStmt : Stmt {
  DataStmt(int line, std::string t) : Stmt(StmtKind::kData, line), text(std::move(t)) {}
  std::string text;
};

struct OutputStmt : Stmt {
  explicit OutputStmt(int line) : Stmt(StmtKind::kOutput, line) {}
  std::vector<ExprPtr> items;
};

struct IfStmt : Stmt {
  explicit IfStmt(int line) : Stmt(StmtKind::kIf, line) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

struct ForStmt : Stmt {
  explicit ForStmt(int line) : Stmt(StmtKind::kFor, line) {}
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // the `if` of the for statement; null if there is none
  bool recursive = false;
  Body body, otherwise;
  bool has_else = false;
  Target test_target;  // the same names as `target`, stored in the scope of the test
  Scope scope, test_scope, else_scope;
  int loop_slot = -1;  // slot of the variable `loop`; -1 if the body does not use `loop`
  int n_slots = 0;     // number of slots of the loop's own activation, if the loop is recursive
};

struct SetStmt : Stmt {
  explicit SetStmt(int line) : Stmt(StmtKind::kSet, line) {}
  Target target;
  ExprPtr value;
};

// BlockStmt is a body with its own scope: a set block (`set` without a value), a filter block, a with block or a plain
// scope.
struct BlockStmt : Stmt {
  using Stmt::Stmt;
  Target target;   // the assigned variable; used only by set blocks
  ExprPtr filter;  // used by filter blocks and set blocks; null if a set block has no filter
  std::vector<std::pair<Target, ExprPtr>> bindings;  // the assignments; used only by with blocks
  Scope scope;
  Body body;
};

struct MacroParameter {
  Value name;
  ExprPtr otherwise;  // the parameter's default value; null if there is none
  int slot = -1;
};

// MacroStmt is a body with its own activation: a macro, a call block or a generation block.
struct MacroStmt : Stmt {
  using Stmt::Stmt;
  MacroProto proto;
  Value name;
  SlotRef ref;  // slot in which the macro itself is stored
  std::vector<MacroParameter> parameters;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;
  ExprPtr call;  // the call that receives the block; used only by call blocks
  Scope scope;
  int n_slots = 0;
  Body body;
};

struct ParsedTemplate {
  ConstantPool constants;
  Body body;
  Scope scope;
  int n_slots = 0;
};

// Parses a template and resolves its variables (scope pass).
Result<std::unique_ptr<ParsedTemplate>> parse_template(std::string_view source);

}  // namespace zinc_rt::jinja
