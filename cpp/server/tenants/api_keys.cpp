#include "server/tenants/api_keys.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::server {
namespace {

// Returns the text after "Bearer" (in any letter case) and spaces. Returns an empty text if the header uses another
// scheme.
std::string_view bearer_of(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  const auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  if (!std::ranges::equal(header.substr(0, kScheme.size()), kScheme, {}, lower)) return {};
  header.remove_prefix(std::min(header.find_first_not_of(' ', kScheme.size() - 1), header.size()));
  return header;
}

}  // namespace

ApiResult<std::string_view> api_key_in(const HttpRequest& request) {
  std::string_view key;
  for (const auto given :
       {bearer_of(request.header("authorization")), request.header("api-key"), request.header("x-api-key")}) {
    if (!key.empty() && !given.empty() && given != key)
      return std::unexpected(make_error(400, "[keys] two API keys are given, in Authorization, api-key or x-api-key"));
    if (!given.empty()) key = given;
  }
  return key;
}

std::string sha256_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_Digest(text.data(), text.size(), digest, &n, EVP_sha256(), nullptr);
  std::string out;
  for (unsigned i = 0; i < n; ++i) fmt::format_to(std::back_inserter(out), "{:02x}", digest[i]);
  return out;
}

Result<std::string> make_api_key() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  unsigned char bytes[43];
  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return fail(StatusCode::kUnavailable, "[keys] the system gave no random bytes");
  std::string key = "zrt-";
  for (const unsigned char b : bytes) key += kAlphabet[b & 63];
  return key;
}

}  // namespace zinc_rt::server
