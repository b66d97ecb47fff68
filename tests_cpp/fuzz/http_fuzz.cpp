// Any bytes as the head of an HTTP message: never past the end, whole heads in any pieces, and the same verdict however
// much follows.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "server/http/http_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zinc_rt::server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kMax = 4096;
  const auto whole = scan_head(bytes, kMax);
  if (whole.state == HeadScan::kWhole && (whole.size > size || whole.size > kMax)) std::abort();
  if (whole.state == HeadScan::kBad && (whole.complaint.empty() || whole.status < 400)) std::abort();
  for (std::size_t n = 0; n < size; n = n * 2 + 1) {
    const auto part = scan_head(bytes.substr(0, n), kMax);
    if (part.state == HeadScan::kBad && whole.state != HeadScan::kBad) std::abort();
    if (part.state == HeadScan::kWhole && (whole.state != HeadScan::kWhole || part.size != whole.size)) std::abort();
  }
  std::string decoded;
  if (percent_decode(bytes, decoded) && !zinc_rt::is_utf8(decoded)) std::abort();
  return 0;
}
