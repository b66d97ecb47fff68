#include "server/answers/write_logprobs.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"

namespace zinc_rt::server {
namespace {

void put_token(std::string& out, const TokenNames& names, std::int32_t id, double logprob) {
  const auto bytes = names.bytes(id);
  out += R"("token":)" + json_string(names.name(id)) + R"(,"logprob":)" + logprob_number(logprob) + R"(,"bytes":[)";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out += (i == 0 ? "" : ",") + std::to_string(static_cast<unsigned char>(bytes[i]));
  out += ']';
}

}  // namespace

std::string logprob_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6f}", value) : "-9999.0";
}

std::string logprobs_json(std::span<const TokenLogprob> tokens, std::uint32_t n_top, const TokenNames& names) {
  std::string out = "[";
  for (const TokenLogprob& t : tokens) {
    out += out.size() == 1 ? "{" : ",{";
    put_token(out, names, t.token_id, t.logprob);
    out += R"(,"top_logprobs":[)";
    for (std::size_t k = 0; k < t.top.size() && k < n_top; ++k) {
      out += k == 0 ? "{" : ",{";
      put_token(out, names, t.top[k].first, t.top[k].second);
      out += '}';
    }
    out += "]}";
  }
  return out + ']';
}

}  // namespace zinc_rt::server
