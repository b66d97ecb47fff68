#include "server/foreign_pages.h"

#include <fmt/format.h>

#include "base/letter_case.h"

namespace zinc_rt::server {
namespace {

// Returns the name in a Host header, without the port.
std::string_view name_in(std::string_view host) {
  if (host.starts_with("[")) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_loopback(std::string_view name) {
  const bool is_number = name.find_first_not_of("0123456789.") == std::string_view::npos;
  return equals_in_any_case(name, "localhost") || name == "::1" || (is_number && name.starts_with("127."));
}

std::string breach_of(const HttpRequest& request, const OwnSite& site, bool is_allowed_origin) {
  if (!site.is_open || is_allowed_origin) return {};
  const auto origin = request.header("origin"), host = request.header("host");
  const bool has_tls = site.has_tls || equals_in_any_case(request.header("x-forwarded-proto"), "https");
  if (!origin.empty() && origin != fmt::format("{}://{}", has_tls ? "https" : "http", host))
    return fmt::format("[http] Origin {} is another site than this server, which has no keys", origin.substr(0, 100));
  const auto from = request.header("sec-fetch-site");
  const bool may_change = request.method != "GET" && request.method != "HEAD";
  if (may_change && !from.empty() && from != "same-origin" && from != "none")
    return fmt::format("[http] Sec-Fetch-Site {}: a page of another site sends this, and the server has no keys",
                       from.substr(0, 100));
  if (!site.listens_on.empty() && !host.empty() && !is_loopback(name_in(host)) &&
      !equals_in_any_case(name_in(host), site.listens_on))
    return fmt::format(
        "[http] Host {} is no name of this machine alone: a server without keys that listens on {} answers to "
        "localhost, "
        "127.0.0.1 and [::1]; for other names start it with --api-key, or with the --host that they stand for",
        host.substr(0, 100), site.listens_on);
  return {};
}

std::string wrong_type_of(const HttpRequest& request, const Route& route) {
  const auto type = request.header("content-type");
  if (request.method == "GET" || request.method == "HEAD" || type.empty()) return {};
  const auto is = [&](std::string_view wanted) { return equals_in_any_case(type.substr(0, wanted.size()), wanted); };
  // A browser sends at least one of these three headers with a form. So a request without any of them does not come
  // from a browser.
  const bool is_no_browsers =
      request.header("origin").empty() && request.header("referer").empty() && request.header("sec-fetch-site").empty();
  constexpr std::string_view kForm = "multipart/form-data";
  if (route.max_form_bytes > 0) {
    // A form with an Authorization header was sent by a script. For that the browser asked this server first (CORS
    // preflight).
    if (is(kForm) && (is_no_browsers || !request.header("authorization").empty())) return {};
    if (is(kForm))
      return fmt::format(
          "[http] {} comes from a browser, without an Authorization header: a page of any site could send it", kForm);
    return fmt::format("[http] Content-Type {} is given, {} wanted", type.substr(0, 80), kForm);
  }
  // `curl -d` sends this type whatever the body is.
  if (is(kJson) || (is("application/x-www-form-urlencoded") && is_no_browsers)) return {};
  return fmt::format("[http] Content-Type {} is given, application/json wanted", type.substr(0, 80));
}

}  // namespace zinc_rt::server
