// Refuses requests that pages of other sites may not make a browser send to this server.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/router.h"

namespace zinc_rt::server {

bool is_loopback(std::string_view name);

// A server without keys trusts everyone who can reach it. So it must refuse requests that a page of another site makes
// a browser send. They are known by their Origin; by a browser's Sec-Fetch-Site, if the request may change something;
// by being a browser's form (wrong_type_of); or, if the server listens on loopback, by a Host that is another site's
// name for this address (with such a name the browser would let the page read the answer). A server with keys is not in
// danger, because the page has no key.
struct OwnSite {
  bool is_open = false;    // it asks for no keys
  bool has_tls = false;    // of itself; a proxy in front may say X-Forwarded-Proto: https, which no page can
  std::string listens_on;  // empty: any Host is answered
};
std::string breach_of(const HttpRequest& request, const OwnSite& site, bool is_allowed_origin);

// Says why the body's type is not accepted; empty if it is. A page of another site can send forms without asking the
// server first, so only forms that no such page can send are accepted.
std::string wrong_type_of(const HttpRequest& request, const Route& route);

}  // namespace zinc_rt::server
