// GrowingBody is a body type for Boost.Beast's requests and responses. A target that includes this header must link
// Boost.
// Thread rule: that of the Beast parser that owns the body.
#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace zinc_rt {

// GrowingBody keeps the body in a string that grows as bytes arrive. No memory is reserved for the Content-Length that
// a client claims, because a client could claim any length and send nothing.
struct GrowingBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}
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

}  // namespace zinc_rt
