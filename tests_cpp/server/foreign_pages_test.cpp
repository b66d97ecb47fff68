// What pages of other sites may make a browser send: by Origin with its scheme, by Sec-Fetch-Site, by Host.
#include "server/foreign_pages.h"

#include <gtest/gtest.h>

namespace zinc_rt::server {
namespace {

struct Sent {
  const char *method, *origin, *fetch_site, *forwarded_proto;
};

bool is_refused(const Sent& sent, const OwnSite& site, bool is_allowed_origin = false) {
  HttpRequest request;
  request.method = sent.method;
  request.headers = {{"host", "localhost:8080"}};
  if (*sent.origin != '\0') request.headers.emplace_back("origin", sent.origin);
  if (*sent.fetch_site != '\0') request.headers.emplace_back("sec-fetch-site", sent.fetch_site);
  if (*sent.forwarded_proto != '\0') request.headers.emplace_back("x-forwarded-proto", sent.forwarded_proto);
  return !breach_of(request, site, is_allowed_origin).empty();
}

TEST(ForeignPages, AreKnownByTheSchemeOfTheirOriginToo) {
  const OwnSite plain{true, false, ""}, tls{true, true, ""};
  const auto from = [](const char* origin, const char* proto = "") { return Sent{"POST", origin, "", proto}; };
  EXPECT_FALSE(is_refused(from("http://localhost:8080"), plain));
  EXPECT_TRUE(is_refused(from("https://localhost:8080"), plain));
  EXPECT_FALSE(is_refused(from("https://localhost:8080"), tls));
  EXPECT_TRUE(is_refused(from("http://localhost:8080"), tls));
  EXPECT_FALSE(is_refused(from("https://localhost:8080", "https"), plain));  // behind a proxy that has the certificate
  EXPECT_TRUE(is_refused(from("http://localhost:8080", "https"), plain));
  for (const char* other : {"null", "localhost:8080", "http://localhost", "http://evil.example", "file://"})
    EXPECT_TRUE(is_refused(from(other), plain)) << other;
}

TEST(ForeignPages, AreKnownByWhatABrowserSaysOfWhereItComesFrom) {
  const OwnSite open{true, false, ""}, with_keys{false, false, ""};
  for (const char* method : {"POST", "DELETE", "PATCH"})
    for (const auto& [site, is_bad] :
         {std::pair{"cross-site", true}, {"same-site", true}, {"same-origin", false}, {"none", false}, {"", false}}) {
      const Sent sent{method, "", site, ""};
      EXPECT_EQ(is_refused(sent, open), is_bad) << method << site;
      EXPECT_FALSE(is_refused(sent, with_keys));
      EXPECT_FALSE(is_refused(sent, open, true));  // a site of cors_origins
    }
  for (const char* method : {"GET", "HEAD"})  // a link to the chat page
    EXPECT_FALSE(is_refused({method, "", "cross-site", ""}, open));
}

}  // namespace
}  // namespace zinc_rt::server
