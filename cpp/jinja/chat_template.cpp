#include "jinja/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jinja/ast.h"
#include "jinja/interpreter.h"
#include "jinja/json.h"

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
  if (!context.is_object()) {
    return fail(StatusCode::kInvalidArgument, "[chat_template] the context must be an object, not {}",
                context.type_name());
  }
  jinja::Interpreter interpreter(*parsed_, limits);
  auto values = jinja::from_json(interpreter, context);
  context = nullptr;
  if (!values) return fail(values.error().code, "[chat_template] context: {}", values.error().message);
  Result<std::string> out = interpreter.run(*std::move(values));
  if (!out) return fail(out.error().code, "[chat_template] line {}: {}", interpreter.line(), out.error().message);
  return out;
}

}  // namespace zinc_rt
