#include "server/transport/request_parser.h"

#include <boost/asio/buffer.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "base/letter_case.h"

namespace zinc_rt::server {

HeadScan complaint(std::string text, int status) {
  return {HeadScan::kBad, 0, status, std::move(text)};
}

HeadScan too_large(std::size_t max_body_bytes) {
  return complaint(fmt::format("the body has more than {} bytes", max_body_bytes), 413);
}

HeadScan complaint_of(const boost::system::error_code& ec, std::size_t max_body_bytes) {
  if (ec == http::error::body_limit) return too_large(max_body_bytes);
  return complaint("the message breaks HTTP: " + ec.message());
}

bool expects(const Parser& parser) {
  return parser.get().version() == 11 && !parser.get()[http::field::expect].empty();
}

HeadScan read_head(std::string_view head, const TransportOptions& options, Parser& parser, HttpRequest& request) {
  parser.eager(true);
  parser.header_limit(static_cast<std::uint32_t>(options.max_head_bytes));
  parser.body_limit(boost::none);
  boost::system::error_code ec;
  if (head.starts_with("\r\n")) head.remove_prefix(2);
  parser.put(boost::asio::buffer(head), ec);
  if (ec == http::error::need_more) ec = {};
  if (!ec && !parser.is_header_done()) ec = http::error::bad_field;
  if (ec) return complaint_of(ec, options.max_body_bytes);
  auto& message = parser.get();
  if (const auto expect = message[http::field::expect];
      message.version() == 11 && !expect.empty() && !boost::beast::iequals(expect, "100-continue"))
    return complaint("an Expect that is not \"100-continue\"", 417);
  request.method = std::string(message.method_string());
  const auto [host, target] = split_target(message.target());
  // A host in the request target takes precedence over the header Host.
  if (!host.empty()) message.set(http::field::host, host);
  const auto mark = target.find('?');
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  if (!percent_decode(std::string_view(target).substr(0, mark), request.path))
    return complaint("the request target has a broken percent escape, or is not UTF-8");
  for (const auto& field : message) {
    request.headers.emplace_back(to_lower(std::string_view(field.name_string())), std::string(field.value()));
  }
  return {};
}

}  // namespace zinc_rt::server
