#include "jinja/walk.h"

namespace zinc_rt::jinja {

namespace {

void visit_arguments(const Arguments& arguments, const ExprVisit& visit) {
  for (const ExprPtr& arg : arguments.positional) visit(*arg);
  for (const auto& [name, arg] : arguments.named) visit(*arg);
  if (arguments.star) visit(*arguments.star);
  if (arguments.double_star) visit(*arguments.double_star);
}

void visit_present(const ExprPtr& expr, const ExprVisit& visit) {
  if (expr) visit(*expr);
}

// Calls `load` or `store` for every name in a subtree, in the order of the template.
class NameWalk {
 public:
  std::function<void(const std::string&)> load;
  std::function<void(const std::string&)> store;

  void expression(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kName) load(static_cast<const NameExpr*>(expr)->name.text());
    for_each_child(*expr, [this](const Expr& child) { expression(&child); });
  }
  void target(const Target& target) {
    if (target.kind == Target::Kind::kName) store(target.name.text());
    for (const Target& item : target.items) this->target(item);
  }
  void body(const Body& body) {
    for (const StmtPtr& stmt : body) statement(*stmt);
  }
  void loop(const ForStmt& stmt) {
    target(stmt.target);
    expression(stmt.iterable.get());
    body(stmt.body);
    body(stmt.otherwise);
    expression(stmt.test.get());
  }

 private:
  void statement(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
        for (const ExprPtr& item : static_cast<const OutputStmt&>(stmt).items) expression(item.get());
        break;
      case StmtKind::kIf: {
        const auto& branch = static_cast<const IfStmt&>(stmt);
        for (const auto& [test, then] : branch.branches) {
          expression(test.get());
          body(then);
        }
        body(branch.otherwise);
        break;
      }
      case StmtKind::kFor: loop(static_cast<const ForStmt&>(stmt)); break;
      case StmtKind::kSet:
        target(static_cast<const SetStmt&>(stmt).target);
        expression(static_cast<const SetStmt&>(stmt).value.get());
        break;
      case StmtKind::kMacro:
      case StmtKind::kCallBlock:
      case StmtKind::kGeneration: {
        const auto& macro = static_cast<const MacroStmt&>(stmt);
        expression(macro.call.get());
        for (const MacroParameter& parameter : macro.parameters) store(parameter.name.text());
        for (const MacroParameter& parameter : macro.parameters) expression(parameter.otherwise.get());
        body(macro.body);
        break;
      }
      case StmtKind::kSetBlock:
      case StmtKind::kFilterBlock:
      case StmtKind::kWith:
      case StmtKind::kScoped: {
        const auto& block = static_cast<const BlockStmt&>(stmt);
        if (stmt.kind == StmtKind::kSetBlock) target(block.target);
        for (const auto& [name, value] : block.bindings) target(name);
        for (const auto& [name, value] : block.bindings) expression(value.get());
        if (stmt.kind == StmtKind::kSetBlock) expression(block.filter.get());
        body(block.body);
        if (stmt.kind == StmtKind::kFilterBlock) expression(block.filter.get());
        break;
      }
      case StmtKind::kData:
      case StmtKind::kBreak:
      case StmtKind::kContinue: break;
    }
  }
};

}  // namespace

void for_each_child(const Expr& expr, const ExprVisit& visit) {
  switch (expr.kind) {
    case ExprKind::kConst:
    case ExprKind::kName: break;
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kLogic:
    case ExprKind::kConcat:
      for (const ExprPtr& item : static_cast<const ItemsExpr&>(expr).items) visit(*item);
      break;
    case ExprKind::kDict:
      for (const auto& [key, value] : static_cast<const DictExpr&>(expr).items) {
        visit(*key);
        visit(*value);
      }
      break;
    case ExprKind::kConditional: {
      const auto& conditional = static_cast<const ConditionalExpr&>(expr);
      visit(*conditional.test);
      visit(*conditional.then);
      visit_present(conditional.otherwise, visit);
      break;
    }
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPlus: visit(*static_cast<const UnaryExpr&>(expr).operand); break;
    case ExprKind::kCompare:
      visit(*static_cast<const CompareExpr&>(expr).first);
      for (const auto& [op, operand] : static_cast<const CompareExpr&>(expr).rest) visit(*operand);
      break;
    case ExprKind::kBinary:
      visit(*static_cast<const BinaryExpr&>(expr).first);
      for (const auto& [op, operand] : static_cast<const BinaryExpr&>(expr).rest) visit(*operand);
      break;
    case ExprKind::kAttribute: visit(*static_cast<const AttributeExpr&>(expr).object); break;
    case ExprKind::kItem:
      visit(*static_cast<const ItemExpr&>(expr).object);
      visit(*static_cast<const ItemExpr&>(expr).key);
      break;
    case ExprKind::kSlice: {
      const auto& slice = static_cast<const SliceExpr&>(expr);
      visit(*slice.object);
      visit_present(slice.start, visit);
      visit_present(slice.stop, visit);
      visit_present(slice.step, visit);
      break;
    }
    case ExprKind::kCall:
      visit(*static_cast<const CallExpr&>(expr).callee);
      visit_arguments(static_cast<const CallExpr&>(expr).arguments, visit);
      break;
    case ExprKind::kFilter:
    case ExprKind::kTest:
      visit_present(static_cast<const ApplyExpr&>(expr).operand, visit);
      visit_arguments(static_cast<const ApplyExpr&>(expr).arguments, visit);
      break;
  }
}

NameUses undeclared_names(const Body& body, std::initializer_list<std::string_view> names) {
  NameUses open(names.begin(), names.end());
  NameUses found;
  NameWalk walk;
  walk.load = [&](const std::string& name) {
    if (open.contains(name)) found.insert(name);
  };
  walk.store = [&](const std::string& name) { open.erase(name); };
  walk.body(body);
  return found;
}

bool stores_name(const ForStmt& loop, std::string_view name) {
  bool found = false;
  NameWalk walk;
  walk.load = [](const std::string&) {};
  walk.store = [&](const std::string& stored) { found = found || stored == name; };
  walk.loop(loop);
  return found;
}

}  // namespace zinc_rt::jinja
