#include "server/api/multipart.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/letter_case.h"
#include "base/utf8.h"
#include "server/http/http_head.h"

namespace zinc_rt::server {
namespace {

std::unexpected<ApiError> bad_form(const std::string& what) {
  return std::unexpected(make_error(400, "[form] " + replace_invalid_utf8(what)));
}

bool is_token_byte(unsigned char c) {
  return c > 0x20 && c < 0x7F &&
         std::string_view("()<>@,;:\\\"/[]?=").find(static_cast<char>(c)) == std::string_view::npos;
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

// Reads a quoted value that begins after its opening quote. Afterwards `text` begins after the closing quote. Returns
// nullopt if the closing quote is missing. A backslash escapes a quote or a backslash. Before any other character it is
// an ordinary backslash, as in paths that some clients send.
std::optional<std::string> read_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    const bool is_escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    value += text[is_escape ? ++i : i];
  }
  return std::nullopt;
}

// Returns the parameters of a header: `; name=value; name="value"`. Errors: 400 for other text and for a repeated name.
ApiResult<Parameters> read_parameters(std::string_view text, const char* header) {
  Parameters parameters;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const auto bad = [&] {
      return bad_form(fmt::format("{}: \"; name=value\" wanted at \"{}\"", header, text.substr(0, 40)));
    };
    if (text.front() != ';') return bad();
    text = trimmed(text.substr(1));
    std::size_t n = 0;
    while (n < text.size() && (is_token_byte(static_cast<unsigned char>(text[n])))) ++n;
    if (n == 0 || n == text.size() || text[n] != '=') return bad();
    std::string name = to_lower(text.substr(0, n));
    text.remove_prefix(n + 1);
    std::string value;
    if (text.starts_with('"')) {
      text.remove_prefix(1);
      auto quoted = read_quoted(text);
      if (!quoted) return bad_form(fmt::format("{}: the value of {} has no closing quote", header, name));
      value = std::move(*quoted);
    } else {
      n = 0;
      while (n < text.size() && is_token_byte(static_cast<unsigned char>(text[n]))) ++n;
      value = std::string(text.substr(0, n));
      text.remove_prefix(n);
    }
    if (std::ranges::find(parameters, name, &Parameters::value_type::first) != parameters.end())
      return bad_form(fmt::format("{}: {} is given twice", header, name));
    parameters.emplace_back(std::move(name), std::move(value));
  }
  return parameters;
}

ApiResult<std::string> boundary_of(std::string_view content_type) {
  constexpr std::string_view kForm = "multipart/form-data";
  if (!equals_in_any_case(content_type.substr(0, kForm.size()), kForm))
    return bad_form(fmt::format("Content-Type \"{}\" is given, {} wanted", content_type.substr(0, 80), kForm));
  ZRT_TRY(const auto parameters, read_parameters(content_type.substr(kForm.size()), "Content-Type"));
  const auto found = std::ranges::find(parameters, "boundary", &Parameters::value_type::first);
  if (found == parameters.end()) return bad_form("Content-Type has no boundary");
  const auto& boundary = found->second;
  constexpr std::size_t kMost = 70;  // the limit in RFC 2046
  const bool is_good = std::ranges::all_of(boundary, [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
  if (boundary.empty() || boundary.size() > kMost || boundary.ends_with(' ') || !is_good)
    return bad_form(fmt::format("the boundary has {} bytes; 1 to {} printable ones wanted, the last one no space",
                                boundary.size(), kMost));
  return boundary;
}

ApiResult<void> read_disposition(std::string_view value, FormPart& part) {
  constexpr std::string_view kWanted = "form-data";
  if (!equals_in_any_case(value.substr(0, kWanted.size()), kWanted))
    return bad_form(fmt::format("Content-Disposition: \"{}\" is given, {} wanted", value.substr(0, 40), kWanted));
  ZRT_TRY(const auto parameters, read_parameters(value.substr(kWanted.size()), "Content-Disposition"));
  for (const auto& [name, text] : parameters) {
    if (name == "name") {
      part.name = text;
    } else if (name == "filename") {
      part.file_name = text;
      part.is_file = true;
    } else {
      return bad_form(fmt::format("Content-Disposition: {} is not read; name and filename are", name.substr(0, 40)));
    }
  }
  if (part.name.empty()) return bad_form("Content-Disposition has no name");
  if (!is_utf8(part.name) || !is_utf8(part.file_name) || part.file_name.find('\0') != std::string::npos)
    return bad_form("Content-Disposition: name and filename are no UTF-8");
  return {};
}

// Reads the headers of a part of the form. `head` does not include the empty line that ends them.
ApiResult<FormPart> read_part_head(std::string_view head) {
  FormPart part;
  bool has_disposition = false;
  while (!head.empty()) {
    const auto end = head.find("\r\n");
    const auto line = head.substr(0, end);
    head = end == std::string_view::npos ? std::string_view{} : head.substr(end + 2);
    const auto colon = line.find(':');
    const auto name = line.substr(0, colon);
    if (colon == std::string_view::npos || name.empty() ||
        !std::ranges::all_of(name, [](unsigned char c) { return is_token_byte(c); }))
      return bad_form(fmt::format("\"{}\" is no header of a part", line.substr(0, 40)));
    const auto value = trimmed(line.substr(colon + 1));
    if (equals_in_any_case(name, "content-disposition")) {
      if (std::exchange(has_disposition, true)) return bad_form("a part has two Content-Disposition");
      ZRT_CHECK_OK(read_disposition(value, part));
    } else if (equals_in_any_case(name, "content-transfer-encoding")) {
      // RFC 7578 has no transfer encodings, so the bytes are the content.
      if (!equals_in_any_case(value, "binary") && !equals_in_any_case(value, "8bit") &&
          !equals_in_any_case(value, "7bit"))
        return bad_form(fmt::format("Content-Transfer-Encoding {} is given, binary wanted", value.substr(0, 40)));
    }
  }
  if (!has_disposition) return bad_form("a part has no Content-Disposition");
  return part;
}

}  // namespace

ApiResult<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body) {
  ZRT_TRY(const auto boundary, boundary_of(content_type));
  const std::string opening = "--" + boundary, between = "\r\n" + opening;
  if (!body.starts_with(opening)) return bad_form("the body does not begin with its boundary");
  std::vector<FormPart> parts;
  for (std::size_t at = opening.size();;) {
    const auto rest = body.substr(at);
    if (rest.starts_with("--")) {
      if (const auto behind = rest.substr(2); !behind.empty() && behind != "\r\n")
        return bad_form(fmt::format("there is more behind the last boundary, from byte {} on", at + 2));
      return parts;
    }
    if (!rest.starts_with("\r\n"))
      return bad_form(fmt::format("a boundary is not followed by the end of its line, at byte {}", at));
    if (parts.size() >= kMostFormParts) return bad_form(fmt::format("more than {} fields", kMostFormParts));
    at += 2;
    const auto n_head = body.substr(at, kMostPartHeadBytes + 4).find("\r\n\r\n");
    if (n_head == std::string_view::npos)
      return bad_form(fmt::format("the headers of the field at byte {} do not end, or take more than {} bytes", at,
                                  kMostPartHeadBytes));
    ZRT_TRY(auto part, read_part_head(body.substr(at, n_head)));
    at += n_head + 4;
    const auto end = body.find(between, at);
    if (end == std::string_view::npos)
      return bad_form(fmt::format("field \"{}\" does not end with the boundary", part.name.substr(0, 40)));
    part.body = body.substr(at, end - at);
    parts.push_back(std::move(part));
    at = end + between.size();
  }
}

}  // namespace zinc_rt::server
