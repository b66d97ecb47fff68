// A Content-Type, a line feed, and any bytes as a form of it: read or refused with a message; fields lie in the body, one
// behind the other, and a form that is cut short is never whole.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "server/api/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zinc_rt::server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto end = bytes.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto type = bytes.substr(0, end), body = bytes.substr(end + 1);
  const auto form = read_form(type, body);
  if (!form) {
    if (form.error().status != 400 || form.error().message.empty()) std::abort();
    return 0;
  }
  if (form->size() > kMostFormParts) std::abort();
  const char* at = body.data();
  for (const auto& part : *form) {
    if (part.name.empty() || !zinc_rt::is_utf8(part.name) || !zinc_rt::is_utf8(part.file_name)) std::abort();
    if (part.body.data() < at || part.body.data() + part.body.size() > body.data() + body.size()) std::abort();
    at = part.body.data() + part.body.size();
  }
  // The last boundary is the end, but for the end of its line.
  for (std::size_t n = 3; n < body.size(); n = n * 2 + 1)
    if (read_form(type, body.substr(0, body.size() - n))) std::abort();
  return 0;
}
