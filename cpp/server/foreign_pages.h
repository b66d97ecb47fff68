// Refuses requests that a web page of another site makes a browser send to this server (cross-site request forgery).
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/router.h"

namespace zinc_rt::server {

// Returns whether a host name or address means this machine.
bool is_loopback(std::string_view name);

// A server without API keys trusts everyone who can reach it. So it must refuse requests that a page of another site
// makes a browser send. It recognizes such a request by one of these signs:
// - Its Origin header names another site.
// - Its Sec-Fetch-Site header says that the page is of another site, and the request may change something.
// - Its body has a type that a browser's form can send (wrong_type_of).
// - The server listens on loopback, and the Host header is a name of another site for this address (DNS rebinding).
//   With such a name the browser would let the page read the answer.
// A server with keys needs no such check, because the page has no key.
struct OwnSite {
  bool is_open = false;  // the server requires no keys
  // The server itself uses TLS. A proxy before it may send X-Forwarded-Proto: https, which no page can send.
  bool has_tls = false;
  std::string listens_on;  // the address that the server listens on; empty: any Host is accepted
};
// Returns why the request is refused; an empty text if it is not.
std::string breach_of(const HttpRequest& request, const OwnSite& site, bool is_allowed_origin);

// Returns why the body's Content-Type is refused; an empty text if it is accepted. A page of another site can send
// forms without asking the server first (CORS preflight). So only types that no such form can have are accepted.
std::string wrong_type_of(const HttpRequest& request, const Route& route);

}  // namespace zinc_rt::server
