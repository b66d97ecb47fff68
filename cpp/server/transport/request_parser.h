// Parses head and body with Boost.Beast, after scan_head() has accepted the head.
// Thread rule: one thread at a time per Parser.
#pragma once

#include <boost/beast/http.hpp>

#include <string>
#include <string_view>

#include "base/growing_body.h"
#include "server/http/http_head.h"
#include "server/transport/transport.h"

namespace zinc_rt::server {

namespace http = boost::beast::http;

using Parser = http::request_parser<GrowingBody>;

// Each of these returns a HeadScan of state kBad, with the error's text and the status to answer with.
HeadScan complaint(std::string text, int status = 400);
HeadScan complaint_of(const boost::system::error_code& ec, std::size_t max_body_bytes);
HeadScan too_large(std::size_t max_body_bytes);

// Parses a complete head into `parser` and `request`. Returns kBad if the head is invalid. The parser has no limit on
// the body yet, because the handler may set one.
HeadScan read_head(std::string_view head, const TransportOptions& options, Parser& parser, HttpRequest& request);

// Returns whether the client waits for "100 Continue" before it sends the body. HTTP/1.0 clients never do.
bool expects(const Parser& parser);

}  // namespace zinc_rt::server
