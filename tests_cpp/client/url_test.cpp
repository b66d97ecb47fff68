#include <gtest/gtest.h>

#include "client/http_client.h"
#include "client/openai_client.h"

namespace zinc_rt::client {
namespace {

TEST(UrlTest, PartsAreFound) {
  const auto plain = parse_url("http://127.0.0.1:8080");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_FALSE(plain->is_tls);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 8080);
  EXPECT_EQ(plain->path, "");
  EXPECT_EQ(plain->authority(), "127.0.0.1:8080");
  const auto deep = parse_url("https://example.org/api/v1//");
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_TRUE(deep->is_tls);
  EXPECT_EQ(deep->port, 443);
  EXPECT_EQ(deep->path, "/api/v1");
  EXPECT_EQ(deep->authority(), "example.org");
  const auto v6 = parse_url("http://[::1]:81/x");
  ASSERT_TRUE(v6) << v6.error().message;
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->authority(), "[::1]:81");
}

TEST(UrlTest, WhatIsNoUrlIsRefused) {
  for (const char* text : {"", "localhost:8080", "ftp://a", "http://", "http://:80", "http://a:", "http://a:0",
                           "http://a:65536", "http://a:8x", "http://[::1", "http://[::1]x", "http://a b",
                           "http://a/\r\nX: y", "http://me@a", "http://a/?q", "http://a#b"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, StatusCode::kInvalidArgument);
    EXPECT_NE(url.error().message.find(text), std::string::npos);
  }
}

TEST(UrlTest, AnApiMayBeNamedWithOrWithoutItsVersion) {
  EXPECT_EQ(api_server("http://a/v1", "")->url.path, "");
  EXPECT_EQ(api_server("http://a/api/v1/", "")->url.path, "/api");
  EXPECT_FALSE(api_server("http://a", "key\r\nX: y"));
}

}  // namespace
}  // namespace zinc_rt::client
