#include "jinja/interpreter.h"

namespace zinc_rt::jinja {

Result<MarkedText> Interpreter::run(Value context) {
  context_ = std::move(context);
  MarkedText out;
  out_ = &out;
  current_ = new_activation(parsed_.n_slots, nullptr);
  enter_scope(parsed_.scope);
  ZRT_TRY(Flow flow, exec_body(parsed_.body));
  (void)flow;
  if (over()) return limit_error();
  return out;
}

Status Interpreter::write(MarkedView text) {
  const auto grow = [this](std::size_t bytes) -> Status {
    out_bytes_ += bytes;
    if (out_bytes_ <= limits_.max_output_bytes) return {};
    return fail(StatusCode::kExhausted, "the output is larger than {} bytes", limits_.max_output_bytes);
  };
  ZRT_CHECK_OK(grow(text.size()));
  const std::size_t before = out_->held_bytes();
  *out_ += text;
  return grow(out_->held_bytes() - before - text.size());
}

void Interpreter::enter_scope(const Scope& scope) {
  for (const SlotLoad& load : scope.loads) {
    Value& target = current_->slots[static_cast<std::size_t>(load.slot)];
    switch (load.kind) {
      case SlotLoad::Kind::kMissing: target = Value(); break;
      case SlotLoad::Kind::kAlias: target = slot(load.from); break;
      case SlotLoad::Kind::kContext: {
        const Value* found = dict_get(context_.as<DictObject>(), load.name.text());
        if (found != nullptr) {
          target = *found;
        } else {
          const Builtin* global = find_global(load.name.text());
          target = global != nullptr ? Value::builtin(global) : Value();
        }
      }
    }
  }
}

void Interpreter::leave_scope(const Scope& scope) {
  for (int slot : scope.slots) current_->slots[static_cast<std::size_t>(slot)] = Value();
}

Result<Flow> Interpreter::exec_body(const Body& body) {
  for (const StmtPtr& stmt : body) {
    ZRT_TRY(Flow flow, exec(*stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::exec(const Stmt& stmt) {
  if (over()) return limit_error();
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::kData: ZRT_CHECK_OK(write(MarkedView(static_cast<const DataStmt&>(stmt).text))); return Flow::kNext;
    case StmtKind::kOutput: ZRT_CHECK_OK(exec_output(static_cast<const OutputStmt&>(stmt))); return Flow::kNext;
    case StmtKind::kIf: return exec_if(static_cast<const IfStmt&>(stmt));
    case StmtKind::kFor: return exec_for(static_cast<const ForStmt&>(stmt));
    case StmtKind::kSet: {
      const auto& set = static_cast<const SetStmt&>(stmt);
      ZRT_CHECK_OK(check_namespaces(set.target));
      ZRT_TRY(Value value, eval(*set.value));
      ZRT_CHECK_OK(assign(set.target, value));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock:
    case StmtKind::kFilterBlock:
    case StmtKind::kWith:
    case StmtKind::kScoped: return exec_block(static_cast<const BlockStmt&>(stmt));
    case StmtKind::kMacro: ZRT_CHECK_OK(exec_macro(static_cast<const MacroStmt&>(stmt))); return Flow::kNext;
    case StmtKind::kCallBlock: ZRT_CHECK_OK(exec_call_block(static_cast<const MacroStmt&>(stmt))); return Flow::kNext;
    case StmtKind::kGeneration: ZRT_CHECK_OK(exec_generation(static_cast<const MacroStmt&>(stmt))); return Flow::kNext;
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

Status Interpreter::exec_output(const OutputStmt& stmt) {
  for (const ExprPtr& item : stmt.items) {
    ZRT_TRY(Value value, eval(*item));
    if (value.is_str()) {
      ZRT_CHECK_OK(write(value.view()));
      continue;
    }
    ZRT_TRY(const MarkedText text, to_str(*this, value));
    ZRT_CHECK_OK(write(text.view()));
  }
  return {};
}

Result<Flow> Interpreter::exec_if(const IfStmt& stmt) {
  for (const auto& [test, body] : stmt.branches) {
    ZRT_TRY(Value value, eval(*test));
    if (truthy(value)) return exec_body(body);
  }
  return exec_body(stmt.otherwise);
}

Status Interpreter::check_namespaces(const Target& target) {
  for (const Target& item : target.items) ZRT_CHECK_OK(check_namespaces(item));
  if (target.kind != Target::Kind::kNamespaceAttribute) return {};
  if (target.ref.slot >= 0 && slot(target.ref).is(Kind::kNamespace)) return {};
  return raise("cannot assign attribute on non-namespace object");
}

Status Interpreter::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::kName: slot(target.ref) = value; return {};
    case Target::Kind::kNamespaceAttribute: {
      ZRT_CHECK_OK(check_namespaces(target));
      auto& space = slot(target.ref).as<NamespaceObject>();
      return dict_set(*this, space.attributes.as<DictObject>(), target.attribute, value);
    }
    case Target::Kind::kTuple: {
      ZRT_TRY(std::vector<Value> items, unpack(*this, value, target.items.size()));
      for (std::size_t i = 0; i < items.size(); ++i) ZRT_CHECK_OK(assign(target.items[i], items[i]));
      return {};
    }
  }
  return {};
}

Result<Flow> Interpreter::exec_for(const ForStmt& stmt) {
  ZRT_TRY(Value iterable, eval(*stmt.iterable));
  if (!stmt.recursive) return exec_iterations(stmt, iterable, 0);
  LoopObject outermost;
  outermost.recursive = &stmt;
  outermost.closure = current_;
  outermost.depth0 = -1;
  ZRT_TRY(Value text, call_loop(outermost, iterable));
  ZRT_CHECK_OK(write(text.view()));
  return Flow::kNext;
}

// Returns an iterator over those items of a for statement that pass its `if`. Each item is tested when the loop takes
// it.
Value Interpreter::filtered(const ForStmt& stmt, const Value& iterable) {
  current_->captured = true;
  NextFunction next = [this, &stmt, cursor = Cursor(iterable), home = current_](Runtime&,
                                                                                Value& item) mutable -> Result<bool> {
    Switch back(*this, home);
    // Each evaluation of the test uses the values that the surrounding variables had when the first item was taken.
    for (;;) {
      ZRT_TRY(bool more, cursor.next(*this, item));
      if (!more) return false;
      enter_scope(stmt.test_scope);
      ZRT_CHECK_OK(assign(stmt.test_target, item));
      ZRT_TRY(Value passes, eval(*stmt.test));
      if (truthy(passes)) return true;
    }
  };
  return iterator("generator", std::move(next), iterable);
}

Result<Flow> Interpreter::exec_iterations(const ForStmt& stmt, const Value& iterable, std::int64_t depth) {
  if (!is_iterable(iterable)) return raise("'{}' object is not iterable", type_name(iterable));
  Value source = stmt.test ? filtered(stmt, iterable) : iterable;
  Cursor cursor(source);
  LoopObject* loop = nullptr;
  Value loop_value;
  if (stmt.loop_slot >= 0) {
    loop = new LoopObject;
    loop->kind = Kind::kLoop;
    loop->iterable = source;
    loop->cursor = cursor;
    loop->depth0 = depth;
    loop->recursive = stmt.recursive ? &stmt : nullptr;
    loop->closure = stmt.recursive ? current_->parent : nullptr;
    loop_value = heap_.adopt(loop, sizeof(LoopObject), 0);
  }
  bool completed_one = false;
  Value item;
  for (;;) {
    bool more = false;
    if (loop != nullptr) {
      ZRT_TRY(more, loop->advance(*this));
      item = loop->current_item;
    } else {
      ZRT_TRY(more, cursor.next(*this, item));
    }
    if (!more) break;
    line_ = stmt.line;
    enter_scope(stmt.scope);
    if (loop != nullptr) current_->slots[static_cast<std::size_t>(stmt.loop_slot)] = loop_value;
    ZRT_CHECK_OK(assign(stmt.target, item));
    ZRT_TRY(Flow flow, exec_body(stmt.body));
    if (flow == Flow::kBreak) break;
    // Jinja runs the else branch unless an iteration ran to its end. So an iteration that ends by continue does not
    // count.
    if (flow == Flow::kNext) completed_one = true;
  }
  leave_scope(stmt.scope);
  return stmt.has_else && !completed_one ? exec_else(stmt) : Flow::kNext;
}

Result<Flow> Interpreter::exec_else(const ForStmt& stmt) {
  enter_scope(stmt.else_scope);
  ZRT_TRY(Flow flow, exec_body(stmt.otherwise));
  leave_scope(stmt.else_scope);
  return flow;
}

Result<Flow> Interpreter::exec_block(const BlockStmt& stmt) {
  if (stmt.kind == StmtKind::kWith || stmt.kind == StmtKind::kScoped) {
    std::vector<Value> values;
    for (const auto& [target, expr] : stmt.bindings) {
      ZRT_TRY(Value value, eval(*expr));
      values.push_back(std::move(value));
    }
    enter_scope(stmt.scope);
    for (std::size_t i = 0; i < values.size(); ++i) ZRT_CHECK_OK(assign(stmt.bindings[i].first, values[i]));
    ZRT_TRY(Flow flow, exec_body(stmt.body));
    leave_scope(stmt.scope);
    return flow;
  }
  enter_scope(stmt.scope);
  Value text;
  {
    Capture capture(*this);
    ZRT_TRY(Flow flow, exec_body(stmt.body));
    if (flow != Flow::kNext) {
      leave_scope(stmt.scope);
      return flow;
    }
    text = str(capture.copy());
  }
  if (stmt.filter) {
    block_text_ = text;
    ZRT_TRY(text, eval(*stmt.filter));
  }
  leave_scope(stmt.scope);
  if (stmt.kind == StmtKind::kSetBlock) {
    ZRT_CHECK_OK(check_namespaces(stmt.target));
    ZRT_CHECK_OK(assign(stmt.target, text));
    return Flow::kNext;
  }
  if (!text.is_str()) return raise("the filter of a filter block gave {}, not str", type_name(text));
  ZRT_CHECK_OK(write(text.view()));
  return Flow::kNext;
}

}  // namespace zinc_rt::jinja
