#include "server/http/http_head.h"
#include "base/letter_case.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxHeaders = 100;

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

HeadScan bad(std::string complaint, int status = 400) {
  return {HeadScan::kBad, 0, status, std::move(complaint)};
}

// Checks that a line has the form "METHOD target HTTP/1.x". Returns what is wrong; an empty text if it is valid.
std::string check_request_line(std::string_view line) {
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return "the request line is not \"METHOD target HTTP/1.1\"";
  const auto method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
             version = line.substr(last + 1);
  if (!is_token(method)) return "the method is not a token";
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return "the version is not HTTP/1.1 or HTTP/1.0";
  const auto path = split_target(target).path;
  if (!path.starts_with('/') && target != "*")
    return "the request target is neither a path that begins with '/' nor an http address";
  for (const unsigned char c : target)
    if (c <= 0x20 || c >= 0x7F) return "the request target has a byte that must be percent-encoded";
  return {};
}

// Headers that may occur only once. With two, a proxy in front of this program might use another of the two than this
// program.
constexpr std::string_view kOnce[] = {"host",
                                      "content-length",
                                      "transfer-encoding",
                                      "content-type",
                                      "content-encoding",
                                      "authorization",
                                      "x-api-key",
                                      "api-key",
                                      "origin",
                                      "expect",
                                      "x-gateway-inference-fairness-id",
                                      "x-llm-d-inference-fairness-id",
                                      "x-gateway-inference-objective",
                                      "x-llm-d-inference-objective"};

struct Seen {
  std::size_t n_headers = 0;
  std::array<bool, std::size(kOnce)> once{};
  int status = 400;  // the status that goes with `complaint`

  bool has(std::string_view name) const {
    return once[static_cast<std::size_t>(std::ranges::find(kOnce, name) - std::begin(kOnce))];
  }
};

// Returns whether the text is a host name, or an IPv6 address in brackets, with or without a port.
bool is_host(std::string_view host) {
  const auto are_all = [](std::string_view text, std::string_view marks) {
    return std::ranges::all_of(text, [&](unsigned char c) {
      return std::isalnum(c) != 0 || marks.find(static_cast<char>(c)) != std::string_view::npos;
    });
  };
  const bool is_bracketed = host.starts_with('[');
  const auto end = is_bracketed ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos || end == 0) return false;
  if (is_bracketed ? !are_all(host.substr(1, end - 1), ":.%") || end == 1
                   : !are_all(host.substr(0, end), "-._~%!$&'()*+,;="))
    return false;
  const auto rest = host.substr(end + (is_bracketed ? 1 : 0));
  return rest.empty() || (rest.starts_with(':') && rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::string check_header_line(std::string_view line, Seen& seen) {
  if (line[0] == ' ' || line[0] == '\t') return "a header line is folded";
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return "a header line has no ':'";
  const auto name = to_lower(line.substr(0, colon));
  if (!is_token(name)) return "a header name is not a token";
  const auto value = trimmed(line.substr(colon + 1));
  for (const unsigned char c : value)
    if ((c < 0x20 && c != '\t') || c == 0x7F) return fmt::format("header {} has a control character", name);
  if (++seen.n_headers > kMaxHeaders) return fmt::format("more than {} header lines", kMaxHeaders);
  if (const auto* once = std::ranges::find(kOnce, name); once != std::end(kOnce))
    if (std::exchange(seen.once[static_cast<std::size_t>(once - std::begin(kOnce))], true))
      return fmt::format("{} is given twice", *once);
  if (name == "host" && !is_host(value)) return "Host is neither a name nor an address, with or without a port";
  if (name == "content-encoding" && to_lower(value) != "identity") {
    seen.status = 415;
    return fmt::format("Content-Encoding {} is not served: bodies are sent as they are", value.substr(0, 40));
  }
  if (name == "content-length") {
    if (value.empty() || value.size() > 18 ||
        !std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c); }))
      return "Content-Length is not a plain number";
  }
  if (name == "transfer-encoding" && to_lower(value) != "chunked") return "Transfer-Encoding is not \"chunked\"";
  if (seen.has("content-length") && seen.has("transfer-encoding"))
    return "both Content-Length and Transfer-Encoding are given";
  return {};
}

}  // namespace

HeadScan scan_head(std::string_view bytes, std::size_t max_bytes) {
  std::size_t at = 0;
  if (bytes.starts_with("\r\n")) at = 2;  // some clients send an empty line after a body
  Seen seen;
  std::string_view request_line;
  for (bool is_first = true;; is_first = false) {
    const auto end = bytes.find('\n', at);
    const auto line = bytes.substr(at, end == std::string_view::npos ? std::string_view::npos : end - at);
    if (is_first)
      for (const unsigned char c : line)
        if ((c < 0x20 && c != '\r') || c >= 0x7F)
          return bad("this is not HTTP: the request line has a byte outside of printable ASCII");
    if (end == std::string_view::npos) {
      if (bytes.size() > max_bytes) return bad(fmt::format("the head has more than {} bytes", max_bytes), 431);
      return {};
    }
    if (line.empty() || line.back() != '\r') return bad("a line ends with a bare line feed");
    const auto text = line.substr(0, line.size() - 1);
    if (text.find('\r') != std::string_view::npos) return bad("a bare carriage return");
    at = end + 1;
    if (at > max_bytes) return bad(fmt::format("the head has more than {} bytes", max_bytes), 431);
    if (is_first) {
      if (auto complaint = check_request_line(text); !complaint.empty()) return bad(std::move(complaint));
      request_line = text;
      continue;
    }
    if (text.empty()) break;
    if (auto complaint = check_header_line(text, seen); !complaint.empty())
      return bad(std::move(complaint), seen.status);
  }
  const bool is_1_1 = request_line.ends_with("1.1");
  if (is_1_1 && !seen.has("host")) return bad("Host is missing");
  if (!is_1_1 && seen.has("transfer-encoding")) return bad("Transfer-Encoding in an HTTP/1.0 message");
  HeadScan whole;
  whole.state = HeadScan::kWhole;
  whole.size = at;
  return whole;
}

Target split_target(std::string_view target) {
  const auto mark = target.find("://");
  const auto scheme = mark == std::string_view::npos ? std::string() : to_lower(target.substr(0, mark));
  if (scheme != "http" && scheme != "https") return {"", std::string(target)};
  const auto rest = target.substr(mark + 3);
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  const auto authority = rest.substr(0, end);
  if (!is_host(authority)) return {};
  return {std::string(authority), (rest.substr(end).starts_with('/') ? "" : "/") + std::string(rest.substr(end))};
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool percent_decode(std::string_view text, std::string& out) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int l = std::tolower(static_cast<unsigned char>(c));
    return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
  };
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = digit(text[i + 1]), low = digit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return is_utf8(out);
}

std::string path_of_head(std::string_view bytes) {
  while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  bytes = bytes.substr(0, bytes.find_first_of("\r\n"));
  const auto first = bytes.find(' ');
  if (first == std::string_view::npos) return {};
  bytes.remove_prefix(first + 1);
  const auto end = bytes.find(' ');
  if (end == std::string_view::npos) return {};
  const auto path = split_target(bytes.substr(0, end)).path;
  std::string out;
  return percent_decode(std::string_view(path).substr(0, path.find('?')), out) ? out : std::string();
}

std::string_view HttpRequest::header(std::string_view name) const {
  const auto it = std::ranges::find(headers, name, [](const auto& h) -> std::string_view { return h.first; });
  return it == headers.end() ? std::string_view() : std::string_view(it->second);
}

HttpResponse plain_refusal(int status, const std::string&, const std::string& why) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = why + "\n";
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

}  // namespace zinc_rt::server
