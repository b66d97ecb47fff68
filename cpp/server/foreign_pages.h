// What pages of other sites may not make a browser send to this server.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/router.h"

namespace zinc_rt::server {

bool is_loopback(std::string_view name);

// A server without keys trusts whoever reaches it, so requests that a page of another site makes a browser send must be
// refused. They are known by their Origin, by what a browser's Sec-Fetch-Site says of one that may change something, by
// being a browser's form (wrong_type_of), or, where the server listens on loopback, by a Host that is another site's name
// for this address, under which the browser would let the page read the answer too. With keys there is no such danger,
// since the page has none.
struct OwnSite {
  bool is_open = false;    // it asks for no keys
  bool has_tls = false;    // of itself; a proxy in front may say X-Forwarded-Proto: https, which no page can
  std::string listens_on;  // empty: any Host is answered
};
std::string breach_of(const HttpRequest& request, const OwnSite& site, bool is_allowed_origin);

// Why the body is of no type that is read here; empty: it is. A page of another site can make a browser send forms
// without asking first, so a form must be one that no such page can send.
std::string wrong_type_of(const HttpRequest& request, const Route& route);

}  // namespace zinc_rt::server
