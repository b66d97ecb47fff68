// Reads forms with files from browsers and OpenAI's clients: multipart/form-data (RFC 7578). Refuses every form that
// two programs could interpret differently.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace zinc_rt::server {

// FormPart is one field of a form.
struct FormPart {
  std::string name;
  std::string file_name;  // the file's name, if the field is a file
  bool is_file = false;
  std::string_view body;  // points into the body given to read_form()
};

// A form may have at most this many fields.
constexpr std::size_t kMostFormParts = 16;
constexpr std::size_t kMostPartHeadBytes = 4096;  // limit on the headers of one part

// Returns the fields of a body. The Content-Type header states the boundary between the fields. Errors: 400 with what
// is wrong and, if known, the position in bytes.
ApiResult<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body);

}  // namespace zinc_rt::server
