// Decides which variable a name means. As in Jinja, this is decided before a template runs, from the positions where
// the template loads and stores the name:
//  - A loop, macro, call, filter, set or with block opens a scope; an if does not.
//  - A name that a scope stores belongs to that scope. Its variable starts as a copy of the enclosing scope's variable
//    with that name, or as missing if there is none.
//  - A name that a scope only loads is the enclosing scope's variable if that scope has one. Else it is looked up in
//    the context once, when the scope is entered.
//  - A name that only a branch of an if stores starts with the value in the enclosing scope or in the context.
// Macros, call blocks and recursive loops are functions. They can run several times at once, so each run has its own
// activation (its variables). All scopes of one function share its activation.
#include <map>
#include <set>

#include "base/error.h"
#include "jinja/ast.h"
#include "jinja/parser.h"
#include "jinja/walk.h"

namespace zinc_rt::jinja {

namespace {

struct FunctionScope {
  FunctionScope* parent = nullptr;
  int n_slots = 0;
};

struct Variable {
  FunctionScope* function = nullptr;
  int slot = -1;
};

struct Start {
  enum class Kind { kParameter, kContext, kAlias, kMissing };
  Kind kind;
  Variable from;
};

// Symbols holds the names of one scope. Each branch of an if has a Symbols object of its own, whose parent is that of
// the scope. So the names that only the branch stores are known.
struct Symbols {
  Symbols(Symbols* enclosing, FunctionScope* f) : parent(enclosing), function(f), owner(this) {}
  explicit Symbols(Symbols* below)
      : parent(below->parent), base(below), function(below->function), owner(below->owner) {}

  Variable own(const std::string& name) const {
    for (const Symbols* s = this; s != nullptr; s = s->base) {
      auto at = s->names.find(name);
      if (at != s->names.end()) return at->second;
    }
    return {};
  }
  Variable find(const std::string& name) const {
    for (const Symbols* s = this; s != nullptr; s = s->parent) {
      Variable v = s->own(name);
      if (v.function != nullptr) return v;
    }
    return {};
  }
  bool stored(const std::string& name) const {
    for (const Symbols* s = this; s != nullptr; s = s->base) {
      if (s->stores.contains(name)) return true;
    }
    return false;
  }
  Variable define(const std::string& name, Start start) {
    auto [at, fresh] = owner->slots.try_emplace(name, function->n_slots);
    if (fresh) ++function->n_slots;
    Variable variable{function, at->second};
    names[name] = variable;
    starts[name] = start;
    return variable;
  }
  void store(const std::string& name) {
    stores.insert(name);
    if (own(name).function != nullptr) return;
    Variable outer = parent != nullptr ? parent->find(name) : Variable{};
    define(name, {outer.function != nullptr ? Start::Kind::kAlias : Start::Kind::kMissing, outer});
  }
  Variable parameter(const std::string& name) {
    stores.insert(name);
    return define(name, {Start::Kind::kParameter, {}});
  }
  void load(const std::string& name) {
    if (find(name).function == nullptr) define(name, {Start::Kind::kContext, {}});
  }
  void merge(std::initializer_list<Symbols*> branches) {
    std::set<std::string> only_in_branches;
    for (const Symbols* branch : branches) {
      for (const std::string& name : branch->stores) {
        if (!stored(name)) only_in_branches.insert(name);
      }
    }
    for (const Symbols* branch : branches) {
      for (const auto& [name, variable] : branch->names) names[name] = variable;
      for (const auto& [name, start] : branch->starts) starts[name] = start;
      stores.insert(branch->stores.begin(), branch->stores.end());
    }
    for (const std::string& name : only_in_branches) {
      Variable outer = parent != nullptr ? parent->find(name) : Variable{};
      starts[name] = {outer.function != nullptr ? Start::Kind::kAlias : Start::Kind::kContext, outer};
    }
  }

  Symbols* parent;
  Symbols* base = nullptr;
  FunctionScope* function;
  Symbols* owner;  // the Symbols of the scope itself, in which this branch lies
  std::map<std::string, Variable> names;
  std::map<std::string, Start> starts;
  std::set<std::string> stores;
  std::map<std::string, int> slots;  // slot of each name; used only in the owner
};

// Survey is the first visit of a scope. It finds the names that the scope loads and stores. Inner scopes get their own
// visit, so only the expressions of their opening tags are visited here.
class Survey {
 public:
  static void body(Symbols& symbols, const Body& body) {
    for (const StmtPtr& statement : body) Survey::statement(symbols, *statement);
  }
  static void expression(Symbols& symbols, const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kName) symbols.load(static_cast<const NameExpr*>(expr)->name.text());
    for_each_child(*expr, [&](const Expr& child) { expression(symbols, &child); });
  }
  static void target(Symbols& symbols, const Target& target, bool as_parameter) {
    switch (target.kind) {
      case Target::Kind::kName:
        if (as_parameter) {
          symbols.parameter(target.name.text());
        } else {
          symbols.store(target.name.text());
        }
        break;
      case Target::Kind::kNamespaceAttribute: symbols.load(target.name.text()); break;
      case Target::Kind::kTuple:
        for (const Target& item : target.items) Survey::target(symbols, item, as_parameter);
    }
  }

 private:
  static void branch(Symbols& symbols, const IfStmt& stmt, std::size_t i) {
    expression(symbols, stmt.branches[i].first.get());
    Symbols body_layer(&symbols);
    body(body_layer, stmt.branches[i].second);
    Symbols elif_layer(&symbols);
    Symbols else_layer(&symbols);
    if (i == 0) {
      // Each elif is surveyed as a separate if in the same layer, because it runs only if the first branch does not.
      for (std::size_t k = 1; k < stmt.branches.size(); ++k) branch(elif_layer, stmt, k);
      body(else_layer, stmt.otherwise);
    }
    symbols.merge({&body_layer, &elif_layer, &else_layer});
  }

  static void statement(Symbols& symbols, const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
        for (const ExprPtr& item : static_cast<const OutputStmt&>(stmt).items) expression(symbols, item.get());
        break;
      case StmtKind::kIf: branch(symbols, static_cast<const IfStmt&>(stmt), 0); break;
      case StmtKind::kFor: expression(symbols, static_cast<const ForStmt&>(stmt).iterable.get()); break;
      case StmtKind::kSet: {
        const auto& set = static_cast<const SetStmt&>(stmt);
        expression(symbols, set.value.get());
        target(symbols, set.target, false);
        break;
      }
      case StmtKind::kSetBlock: target(symbols, static_cast<const BlockStmt&>(stmt).target, false); break;
      case StmtKind::kMacro: symbols.store(static_cast<const MacroStmt&>(stmt).name.text()); break;
      case StmtKind::kCallBlock: expression(symbols, static_cast<const MacroStmt&>(stmt).call.get()); break;
      case StmtKind::kFilterBlock: expression(symbols, static_cast<const BlockStmt&>(stmt).filter.get()); break;
      case StmtKind::kWith:
        for (const auto& [name, value] : static_cast<const BlockStmt&>(stmt).bindings) expression(symbols, value.get());
        break;
      case StmtKind::kScoped:
      case StmtKind::kGeneration:
      case StmtKind::kData:
      case StmtKind::kBreak:
      case StmtKind::kContinue: break;
    }
  }
};

// Resolver is the second visit of a scope. It assigns a slot to every name, then surveys and resolves the inner scopes.
class Resolver {
 public:
  explicit Resolver(ConstantPool& pool) : pool_(pool) {}

  Status root(ParsedTemplate& parsed) {
    FunctionScope function;
    Symbols symbols(nullptr, &function);
    Survey::body(symbols, parsed.body);
    ZRT_CHECK_OK(body(parsed.body, symbols, false));
    parsed.scope = finish(symbols);
    parsed.n_slots = function.n_slots;
    return {};
  }

 private:
  // Resolves the statements of a body. `soft` is true inside an if, where an unknown filter or test is an error only if
  // it is executed.
  Status body(Body& body, Symbols& symbols, bool soft) {
    for (StmtPtr& statement : body) ZRT_CHECK_OK(this->statement(*statement, symbols, soft));
    return {};
  }

  static SlotRef reference(const Symbols& symbols, Variable variable) {
    SlotRef ref{0, variable.slot};
    if (variable.function == nullptr) return ref;
    for (FunctionScope* f = symbols.function; f != nullptr && f != variable.function; f = f->parent) ++ref.hops;
    return ref;
  }

  Scope finish(const Symbols& symbols) {
    Scope scope;
    for (const auto& [name, start] : symbols.starts) {
      auto variable = symbols.names.find(name);
      if (variable == symbols.names.end()) continue;
      int slot = variable->second.slot;
      scope.slots.push_back(slot);
      switch (start.kind) {
        case Start::Kind::kParameter: break;
        case Start::Kind::kMissing: scope.loads.push_back({SlotLoad::Kind::kMissing, slot, {}, {}}); break;
        case Start::Kind::kAlias:
          scope.loads.push_back({SlotLoad::Kind::kAlias, slot, reference(symbols, start.from), {}});
          break;
        case Start::Kind::kContext: scope.loads.push_back({SlotLoad::Kind::kContext, slot, {}, pool_.str(name)}); break;
      }
    }
    return scope;
  }

  Status expression(Expr* expr, Symbols& symbols, bool soft) {
    if (expr == nullptr) return {};
    if (expr->kind == ExprKind::kName) {
      auto* name = static_cast<NameExpr*>(expr);
      name->ref = reference(symbols, symbols.find(name->name.text()));
    }
    if (expr->kind == ExprKind::kFilter || expr->kind == ExprKind::kTest) {
      auto* apply = static_cast<ApplyExpr*>(expr);
      if (apply->function == nullptr && !soft) {
        return fail(StatusCode::kInvalidArgument, "[chat_template] line {}: No {} named '{}'.", expr->line,
                    expr->kind == ExprKind::kFilter ? "filter" : "test", apply->name);
      }
    }
    bool inner_soft = soft || expr->kind == ExprKind::kConditional;
    Status status;
    for_each_child(*expr, [&](const Expr& child) {
      if (status) status = expression(const_cast<Expr*>(&child), symbols, inner_soft);
    });
    return status;
  }

  void target(Target& target, Symbols& symbols) {
    for (Target& item : target.items) this->target(item, symbols);
    if (target.kind != Target::Kind::kTuple) target.ref = reference(symbols, symbols.find(target.name.text()));
  }

  Status macro(MacroStmt& stmt, Symbols& outer) {
    FunctionScope function{outer.function};
    Symbols symbols(&outer, &function);
    for (MacroParameter& parameter : stmt.parameters) parameter.slot = symbols.parameter(parameter.name.text()).slot;
    NameUses uses = undeclared_names(stmt.body, {"caller", "kwargs", "varargs"});
    const MacroParameter* explicit_caller = nullptr;
    auto has_parameter = [&](std::string_view name) -> const MacroParameter* {
      for (const MacroParameter& parameter : stmt.parameters) {
        if (parameter.name.text() == name) return &parameter;
      }
      return nullptr;
    };
    if (uses.contains("caller")) {
      explicit_caller = has_parameter("caller");
      if (explicit_caller != nullptr && !explicit_caller->otherwise) {
        return fail(StatusCode::kInvalidArgument,
                    "[chat_template] line {}: the argument \"caller\" of a macro or call block must have a default",
                    stmt.line);
      }
      if (explicit_caller == nullptr) stmt.caller_slot = symbols.parameter("caller").slot;
      stmt.proto.accepts_caller = true;
    }
    if (uses.contains("kwargs") && has_parameter("kwargs") == nullptr) {
      stmt.kwargs_slot = symbols.parameter("kwargs").slot;
      stmt.proto.accepts_kwargs = true;
    }
    if (uses.contains("varargs") && has_parameter("varargs") == nullptr) {
      stmt.varargs_slot = symbols.parameter("varargs").slot;
      stmt.proto.accepts_varargs = true;
    }
    for (const MacroParameter& parameter : stmt.parameters) Survey::expression(symbols, parameter.otherwise.get());
    Survey::body(symbols, stmt.body);
    for (MacroParameter& parameter : stmt.parameters) {
      ZRT_CHECK_OK(expression(parameter.otherwise.get(), symbols, false));
    }
    ZRT_CHECK_OK(body(stmt.body, symbols, false));
    stmt.scope = finish(symbols);
    stmt.n_slots = function.n_slots;
    stmt.proto.statement = &stmt;
    return {};
  }

  Status loop(ForStmt& stmt, Symbols& outer, bool soft) {
    ZRT_CHECK_OK(expression(stmt.iterable.get(), outer, soft));
    if (stores_name(stmt, "loop")) {
      return fail(StatusCode::kInvalidArgument,
                  "[chat_template] line {}: Can't assign to special loop variable in for-loop target", stmt.line);
    }
    FunctionScope own{outer.function};
    FunctionScope* function = stmt.recursive ? &own : outer.function;
    Symbols symbols(&outer, function);
    if (stmt.recursive || undeclared_names(stmt.body, {"loop"}).contains("loop")) {
      stmt.loop_slot = symbols.parameter("loop").slot;
    }
    Survey::target(symbols, stmt.target, true);
    Survey::body(symbols, stmt.body);
    target(stmt.target, symbols);
    if (stmt.test) {
      Symbols test(&outer, function);
      Survey::target(test, stmt.test_target, true);
      Survey::expression(test, stmt.test.get());
      target(stmt.test_target, test);
      ZRT_CHECK_OK(expression(stmt.test.get(), test, false));
      stmt.test_scope = finish(test);
    }
    ZRT_CHECK_OK(body(stmt.body, symbols, false));
    stmt.scope = finish(symbols);
    if (stmt.has_else) {
      Symbols otherwise(&outer, function);
      Survey::body(otherwise, stmt.otherwise);
      ZRT_CHECK_OK(body(stmt.otherwise, otherwise, false));
      stmt.else_scope = finish(otherwise);
    }
    stmt.n_slots = own.n_slots;
    return {};
  }

  Status block(BlockStmt& stmt, Symbols& outer, bool soft) {
    Symbols symbols(&outer, outer.function);
    for (auto& [name, value] : stmt.bindings) {
      ZRT_CHECK_OK(expression(value.get(), outer, soft));
      Survey::target(symbols, name, true);
    }
    Survey::body(symbols, stmt.body);
    Survey::expression(symbols, stmt.filter.get());
    for (auto& [name, value] : stmt.bindings) target(name, symbols);
    if (stmt.kind == StmtKind::kSetBlock) target(stmt.target, outer);
    ZRT_CHECK_OK(expression(stmt.filter.get(), symbols, false));
    ZRT_CHECK_OK(body(stmt.body, symbols, false));
    stmt.scope = finish(symbols);
    return {};
  }

  Status statement(Stmt& stmt, Symbols& symbols, bool soft) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
        for (ExprPtr& item : static_cast<OutputStmt&>(stmt).items) {
          ZRT_CHECK_OK(expression(item.get(), symbols, soft));
        }
        return {};
      case StmtKind::kIf: {
        auto& branch = static_cast<IfStmt&>(stmt);
        for (auto& [test, then] : branch.branches) {
          ZRT_CHECK_OK(expression(test.get(), symbols, true));
          ZRT_CHECK_OK(body(then, symbols, true));
        }
        return body(branch.otherwise, symbols, true);
      }
      case StmtKind::kFor: return loop(static_cast<ForStmt&>(stmt), symbols, soft);
      case StmtKind::kSet: {
        auto& set = static_cast<SetStmt&>(stmt);
        ZRT_CHECK_OK(expression(set.value.get(), symbols, soft));
        target(set.target, symbols);
        return {};
      }
      case StmtKind::kMacro: {
        auto& macro_stmt = static_cast<MacroStmt&>(stmt);
        macro_stmt.ref = reference(symbols, symbols.find(macro_stmt.name.text()));
        return macro(macro_stmt, symbols);
      }
      case StmtKind::kCallBlock:
        ZRT_CHECK_OK(expression(static_cast<MacroStmt&>(stmt).call.get(), symbols, soft));
        return macro(static_cast<MacroStmt&>(stmt), symbols);
      case StmtKind::kGeneration: return macro(static_cast<MacroStmt&>(stmt), symbols);
      case StmtKind::kSetBlock:
      case StmtKind::kFilterBlock:
      case StmtKind::kWith:
      case StmtKind::kScoped: return block(static_cast<BlockStmt&>(stmt), symbols, soft);
      case StmtKind::kData:
      case StmtKind::kBreak:
      case StmtKind::kContinue: return {};
    }
    return {};
  }

  ConstantPool& pool_;
};

}  // namespace

Result<std::unique_ptr<ParsedTemplate>> parse_template(std::string_view source) {
  auto parsed = std::make_unique<ParsedTemplate>();
  ZRT_TRY(std::vector<Token> tokens, tokenize(source));
  Parser parser(std::move(tokens), parsed->constants);
  ZRT_TRY(parsed->body, parser.parse());
  Resolver resolver(parsed->constants);
  ZRT_CHECK_OK(resolver.root(*parsed));
  return parsed;
}

}  // namespace zinc_rt::jinja
