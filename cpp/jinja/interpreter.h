// Interpreter runs a parsed template. eval.cpp evaluates expressions, exec.cpp runs statements, invoke.cpp calls macros
// and loops.
// Thread rule: one interpreter per render; the parsed template is shared and read only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jinja/ast.h"
#include "jinja/loop.h"
#include "jinja/runtime.h"

namespace zinc_rt::jinja {

// Holds the variables of one run of a function (the template, a macro or a recursive loop). `parent` is the run of the
// surrounding function in which this function was defined.
struct Activation {
  std::vector<Value> slots;
  Activation* parent = nullptr;
  bool captured = false;  // whether a value refers to this activation, so that it must live until the render ends
};

enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

class Interpreter final : public Runtime {
 public:
  Interpreter(const ParsedTemplate& parsed, const RenderLimits& limits) : Runtime(limits), parsed_(parsed) {}

  // Runs the template and returns its text. Bytes that came from the context are marked.
  Result<MarkedText> run(Value context);
  int line() const { return line_; }

  Result<Value> call(const Value& callee, Args& args) override;
  Result<Value> call_loop(const LoopObject& loop, const Value& iterable) override;

 private:
  // The following functions run statements. They are defined in exec.cpp.
  Result<Flow> exec(const Stmt& stmt);
  Result<Flow> exec_body(const Body& body);
  Result<Flow> exec_if(const IfStmt& stmt);
  Result<Flow> exec_for(const ForStmt& stmt);
  Result<Flow> exec_iterations(const ForStmt& stmt, const Value& iterable, std::int64_t depth);
  Result<Flow> exec_else(const ForStmt& stmt);
  Result<Flow> exec_block(const BlockStmt& stmt);
  Status exec_output(const OutputStmt& stmt);
  Status write(MarkedView text);
  Status assign(const Target& target, const Value& value);
  Status check_namespaces(const Target& target);
  void enter_scope(const Scope& scope);
  void leave_scope(const Scope& scope);
  Value filtered(const ForStmt& stmt, const Value& iterable);

  // The following functions evaluate expressions. They are defined in eval.cpp.
  Result<Value> eval(const Expr& expr);
  Result<Value> eval_name(const NameExpr& expr);
  Result<Value> eval_items(const ItemsExpr& expr);
  Result<Value> eval_dict(const DictExpr& expr);
  Result<Value> eval_logic(const ItemsExpr& expr);
  Result<Value> eval_conditional(const ConditionalExpr& expr);
  Result<Value> eval_compare(const CompareExpr& expr);
  Result<Value> eval_binary(const BinaryExpr& expr);
  Result<Value> eval_concat(const ItemsExpr& expr);
  Result<Value> eval_unary(const UnaryExpr& expr);
  Result<Value> eval_slice(const SliceExpr& expr);
  Result<Value> eval_call(const CallExpr& expr, const Value& caller);
  Result<Value> eval_apply(const ApplyExpr& expr);
  Result<Args> eval_arguments(const Arguments& arguments);
  Status eval_starred(const Arguments& arguments, Args& out);

  // The following functions call macros and loops. They are defined in invoke.cpp.
  Status exec_macro(const MacroStmt& stmt);
  Status exec_call_block(const MacroStmt& stmt);
  Status exec_generation(const MacroStmt& stmt);
  Result<Value> call_macro(const MacroObject& macro, Args& args);
  Status fill_parameters(const MacroStmt& stmt, Args& args, Activation& activation);
  Status fill_defaults(const MacroStmt& stmt);
  Result<Value> run_macro_body(const MacroStmt& stmt);
  Value make_macro(const MacroStmt& stmt);
  Activation* new_activation(int n_slots, Activation* parent);
  void drop_activation(Activation* activation);

  const Value& slot(const SlotRef& ref) const;
  Value& slot(const SlotRef& ref);

  // While a Capture exists, the template's output goes to the Capture's own buffer. Macros and blocks collect their
  // text with it.
  class Capture {
   public:
    explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), outer_(interpreter.out_) {
      interpreter.out_ = &text_;
    }
    ~Capture() {
      interpreter_.out_ = outer_;
      interpreter_.out_bytes_ -= text_.held_bytes();
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    // Returns a copy of the text so far. The bytes of the text are subtracted from out_bytes_ only by the destructor.
    MarkedText copy() const { return text_; }

   private:
    Interpreter& interpreter_;
    MarkedText* outer_;
    MarkedText text_;
  };

  // While a Switch exists, the given activation is the current one.
  class Switch {
   public:
    Switch(Interpreter& interpreter, Activation* to) : interpreter_(interpreter), back_(interpreter.current_) {
      interpreter.current_ = to;
    }
    ~Switch() { interpreter_.current_ = back_; }
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

   private:
    Interpreter& interpreter_;
    Activation* back_;
  };

  const ParsedTemplate& parsed_;
  Value context_;
  std::vector<std::unique_ptr<Activation>> activations_;
  Activation* current_ = nullptr;
  MarkedText* out_ = nullptr;
  std::size_t out_bytes_ = 0;  // bytes in all output buffers, including the memory of marks
  Value block_text_;           // the text that a filter block or set block passes to its first filter
  int line_ = 1;
};

}  // namespace zinc_rt::jinja
