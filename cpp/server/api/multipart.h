// Reads forms with files from browsers and OpenAI's clients: multipart/form-data (RFC 7578). Refuses whatever two
// programs could read in two ways.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace zinc_rt::server {

// One field of a form.
struct FormPart {
  std::string name;
  std::string file_name;  // of a file; other fields have none
  bool is_file = false;
  std::string_view body;  // within the body that was read
};

constexpr std::size_t kMostFormParts = 16;
constexpr std::size_t kMostPartHeadBytes = 4096;  // of the headers of one part

// The fields of a body. The boundary between them is in its Content-Type. Errors: 400 with what is wrong and, if known,
// the byte.
ApiResult<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body);

}  // namespace zinc_rt::server
