// A request's head and body by Boost.Beast's parser, after scan_head has found nothing wrong with the head.
// Thread rule: a Parser by one thread at a time.
#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http.hpp>

#include <string>
#include <string_view>

#include "server/transport/http_head.h"
#include "server/transport/transport.h"

namespace zinc_rt::server {

namespace http = boost::beast::http;

// A body that grows as its bytes come: nothing is reserved for the length that the head claims.
struct GrowingBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>&, value_type& body) : body_(body) {}
    static void init(const boost::optional<std::uint64_t>&, boost::system::error_code& ec) { ec = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& ec) {
      ec = {};
      std::size_t n = 0;
      for (const auto piece : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(piece.data()), piece.size());
        n += piece.size();
      }
      return n;
    }
    static void finish(boost::system::error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};
using Parser = http::request_parser<GrowingBody>;

// What is wrong with a message, and the status to answer.
HeadScan complaint(std::string text, int status = 400);
HeadScan complaint_of(const boost::system::error_code& ec, std::size_t max_body_bytes);
HeadScan too_large(std::size_t max_body_bytes);

// Reads a whole head into `parser` and, as handlers see it, into `request`. kBad: what is wrong with it. The parser has no
// limit on the body yet, since the handler may give it one.
HeadScan read_head(std::string_view head, const TransportOptions& options, Parser& parser, HttpRequest& request);

// Whether the client waits for "100 Continue" before it sends the body. Clients of HTTP/1.0 know of no expectations.
bool expects(const Parser& parser);

}  // namespace zinc_rt::server
