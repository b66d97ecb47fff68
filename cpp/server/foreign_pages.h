// Refuses requests that a web page of another site makes a browser send to this server (cross-site request forgery).
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/router.h"

namespace zinc_rt::server {

bool is_loopback(std::string_view name);

// A server without API keys trusts everyone who can reach it, so it must refuse requests that a page of another site
// makes a browser send. Such a request is recognized by one of these:
// - its Origin header;
// - its Sec-Fetch-Site header, if the request may change something;
// - a body type that a browser's form can send (wrong_type_of);
// - if the server listens on loopback, a Host that is a name of another site for this address (DNS rebinding; with such
// a name the browser would let the page read the answer).
// A server with keys needs no such check, because the page has no key.
struct OwnSite {
  bool is_open = false;  // it requires no keys
  // the server itself uses TLS. A proxy before it may send X-Forwarded-Proto: https, which no page can send
  bool has_tls = false;
  std::string listens_on;  // the address it listens on; empty: any Host is accepted
};
std::string breach_of(const HttpRequest& request, const OwnSite& site, bool is_allowed_origin);

// Returns why the body's Content-Type is refused; empty if it is accepted. A page of another site can send forms
// without asking the server first (CORS preflight), so only types that no such form can have are accepted.
std::string wrong_type_of(const HttpRequest& request, const Route& route);

}  // namespace zinc_rt::server
