#include "jinja/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jinja/ast.h"
#include "jinja/interpreter.h"
#include "jinja/json.h"
#include "jinja/ops.h"

namespace zinc_rt {

ChatTemplate::ChatTemplate(std::unique_ptr<jinja::ParsedTemplate> parsed) : parsed_(std::move(parsed)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  ZRT_TRY(auto parsed, jinja::parse_template(source));
  return ChatTemplate(std::move(parsed));
}

Result<std::string> ChatTemplate::render(nlohmann::ordered_json context, const RenderLimits& limits) const {
  ZRT_TRY(MarkedText out, render_marked(std::move(context), nlohmann::ordered_json::object(), {}, limits));
  return out.take_text();
}

Result<MarkedText> ChatTemplate::render_marked(nlohmann::ordered_json context, nlohmann::ordered_json own,
                                               const jinja::OwnWords& words, const RenderLimits& limits) const {
  if (!context.is_object()) {
    return fail(StatusCode::kInvalidArgument, "[chat_template] the context must be an object, not {}",
                context.type_name());
  }
  jinja::Interpreter interpreter(*parsed_, limits);
  auto values = jinja::from_json(interpreter, context, words);
  context = nullptr;
  if (!values) return fail(values.error().code, "[chat_template] context: {}", values.error().message);
  auto own_values = jinja::from_json(interpreter, own, {}, true);
  if (!own_values) return fail(own_values.error().code, "[chat_template] context: {}", own_values.error().message);
  ZRT_CHECK_OK(jinja::dict_update(interpreter, values->as<jinja::DictObject>(), *own_values));
  Result<MarkedText> out = interpreter.run(*std::move(values));
  if (!out) return fail(out.error().code, "[chat_template] line {}: {}", interpreter.line(), out.error().message);
  return out;
}

}  // namespace zinc_rt
