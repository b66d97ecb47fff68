#include <fmt/format.h>

#include "base/error.h"
#include "base/read_number.h"
#include "client/http_client.h"

namespace zinc_rt::client {

Result<Url> parse_url(std::string_view text) {
  const auto wrong = [whole = std::string(text)](const char* what) {
    return fail(StatusCode::kInvalidArgument, "[url] \"{}\": {}; such as http://127.0.0.1:8080 wanted", whole, what);
  };
  Url url;
  if (text.starts_with("https://"))
    url.is_tls = true;
  else if (!text.starts_with("http://"))
    return wrong("it does not begin with http:// or https://");
  url.port = url.is_tls ? 443 : 80;
  text.remove_prefix(url.is_tls ? 8 : 7);
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return wrong("it has a space or a control character");
  if (text.find_first_of("@?#") != std::string_view::npos)
    return wrong("user names, queries and fragments are not taken");
  const auto slash = text.find('/');
  auto place = text.substr(0, slash);
  if (slash != std::string_view::npos) url.path = text.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  const auto after_host = place.starts_with('[') ? place.find(']') : place.find(':');
  if (place.starts_with('[')) {
    if (after_host == std::string_view::npos) return wrong("a bracket is not closed");
    url.host = place.substr(1, after_host - 1);
    place.remove_prefix(after_host + 1);
  } else {
    url.host = place.substr(0, after_host);
    place.remove_prefix(url.host.size());
  }
  if (url.host.empty()) return wrong("it has no host");
  if (place.empty()) return url;
  if (place.front() != ':') return wrong("there is something between host and port");
  place.remove_prefix(1);
  if (!read_number(place, url.port) || url.port == 0) return wrong("the port is no port");
  return url;
}

std::string Url::authority() const {
  const auto name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (is_tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

}  // namespace zinc_rt::client
