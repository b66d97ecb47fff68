#include "jinja/ops.h"

namespace zinc_rt::jinja {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

Result<Value> escape_value(Runtime& rt, const Value& value) {
  if (value.is_str() && value.as<StrObject>().markup) return value;
  ZRT_TRY(const MarkedText text, to_str(rt, value));
  return rt.str(map_runs(text.view(), escape_html), true);
}

}  // namespace zinc_rt::jinja
