#include "grammar/json_reader.h"

#include "base/strict_json.h"

namespace zinc_rt::grammar {

Result<Json> read_json(std::string_view text, const Limits& limits) {
  if (text.size() > limits.max_source_bytes)
    return too_complex("bytes of a schema", text.size(), limits.max_source_bytes);
  auto value = read_strict_json(text, limits.max_depth);
  if (value) return std::move(*value);
  const JsonFault& fault = value.error();
  switch (fault.kind) {
    case JsonFault::Kind::kDepth:
      return too_complex("nesting of a schema's text", limits.max_depth + 1, limits.max_depth);
    case JsonFault::Kind::kValue: return fail(StatusCode::kInvalidArgument, "[schema] {}", fault.what);
    case JsonFault::Kind::kSyntax: break;
  }
  return fail(StatusCode::kInvalidArgument, "[schema] byte {}: this is not JSON", fault.byte);
}

}  // namespace zinc_rt::grammar
