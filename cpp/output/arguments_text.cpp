// Writes the arguments of a call in the syntax of a format.
#include <nlohmann/json.hpp>

#include "base/json_number.h"
#include "base/json_text.h"
#include "output/format.h"

namespace zinc_rt::output {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& text) {
  return text.get<std::string>();
}

// Returns the items of a list or an object with commas between them; item(key, value) writes one.
template <typename Item>
std::string joined(const Json& value, std::string_view comma, const Item& item) {
  std::string out;
  bool is_first = true;
  for (const auto& [key, one] : value.items()) {
    if (!is_first) out += comma;
    is_first = false;
    out += item(key, one);
  }
  return out;
}

std::string python_of(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return json_string(text_of(value));
  if (value.is_array())
    return "[" + joined(value, ", ", [](const auto&, const Json& one) { return python_of(one); }) + "]";
  if (!value.is_object()) return dump_json(value);
  return "{" +
         joined(value, ", ",
                [](const auto& key, const Json& one) { return json_string(key) + ": " + python_of(one); }) +
         "}";
}

std::string bare_of(const Json& value, std::string_view quote) {
  const auto inner = [&](const Json& one) { return bare_of(one, quote); };
  if (value.is_string()) return std::string(quote) + text_of(value) + std::string(quote);
  if (value.is_array()) return "[" + joined(value, ",", [&](const auto&, const Json& one) { return inner(one); }) + "]";
  if (!value.is_object()) return dump_json(value);
  return "{" + joined(value, ",", [&](const auto& key, const Json& one) { return key + ":" + inner(one); }) + "}";
}

}  // namespace

ParameterForm parameter_form(const CallFormat& format) {
  const std::string mark(format.mark), gap(format.gap);
  switch (format.openings[0].syntax) {
    case Syntax::kInvoke:
      return {"<" + mark + "parameter name=\"", "\" string=\"true\">", "\" string=\"false\">",
              "</" + mark + "parameter>\n"};
    case Syntax::kPairs: {
      const std::string name_end = "</arg_key>" + gap + "<arg_value>";
      return {"<arg_key>", name_end, name_end, "</arg_value>" + gap};
    }
    default: return {"<parameter=", ">\n", ">\n", "\n</parameter>\n"};
  }
}

std::string arguments_text(const CallFormat& format, const Json& object) {
  switch (format.openings[0].syntax) {
    case Syntax::kPython:
      return joined(object, ", ", [](const auto& key, const Json& value) { return key + "=" + python_of(value); });
    case Syntax::kBare: return bare_of(object, format.mark);
    case Syntax::kTags:
    case Syntax::kPairs:
    case Syntax::kInvoke: {
      const auto form = parameter_form(format);
      return joined(object, "", [&](const auto& key, const Json& value) {
        return form.open + key +
               (value.is_string() ? form.name_end + text_of(value) : form.json_name_end + dump_json(value)) +
               form.close;
      });
    }
    default: return dump_json(object, kPythonLayout);
  }
}

}  // namespace zinc_rt::output
