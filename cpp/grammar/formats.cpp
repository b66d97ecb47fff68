#include "grammar/formats.h"

#include <fmt/format.h>

namespace zinc_rt::grammar {
namespace {

// Matches dates, with the right number of days of each month. February has 29 days in years divisible by 4, except
// years divisible by 100 but not by 400.
constexpr std::string_view kDate =
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|"
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
// Matches times without leap seconds, because the time zone decides whether a leap second is possible.
constexpr std::string_view kTime =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
constexpr std::string_view kOctet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
constexpr std::string_view kHex4 = "[0-9A-Fa-f]{1,4}";
constexpr std::string_view kLabel = "[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?";

std::string date_time() {
  return fmt::format("{}[Tt]{}", kDate, kTime);
}

std::string ipv4() {
  return fmt::format("{0}\\.{0}\\.{0}\\.{0}", kOctet);
}

// Returns a regex for IPv6 addresses (RFC 4291). An address has eight groups. One run of groups may be written as "::",
// and the last two groups as an IPv4 address.
std::string ipv6() {
  const std::string last = fmt::format("(?:{0}:{0}|{1})", kHex4, ipv4());
  std::string made = fmt::format("(?:{}:){{6}}{}", kHex4, last);
  // Each alternative matches addresses of 0 to `before` groups, "::", exactly `behind` groups, and `last`.
  for (int behind = 5; behind >= 0; --behind) {
    const int before = 5 - behind;
    const std::string head = before == 0 ? "" : fmt::format("(?:(?:{0}:){{0,{1}}}{0})?", kHex4, before - 1);
    made += fmt::format("|{}::(?:{}:){{{}}}{}", head, kHex4, behind, last);
  }
  made += fmt::format("|(?:(?:{0}:){{0,5}}{0})?::{0}|(?:(?:{0}:){{0,6}}{0})?::", kHex4);
  return made;
}

std::string hostname() {
  return fmt::format("{0}(?:\\.{0})*", kLabel);
}

std::string email() {
  constexpr std::string_view kAtom = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+";
  return fmt::format("{0}(?:\\.{0})*@{1}", kAtom, hostname());
}

// Returns a regex for URIs (RFC 3986). The host must be a name or an IPv4 address.
std::string uri() {
  constexpr std::string_view kPlain = "0-9A-Za-z._~!$&'()*+,;=\\-";
  constexpr std::string_view kPercent = "%[0-9A-Fa-f]{2}";
  const std::string segment = fmt::format("(?:[{}:@]|{})", kPlain, kPercent);
  const std::string authority = fmt::format("(?:(?:[{0}:]|{1})*@)?(?:[{0}]|{1})*(?::[0-9]*)?", kPlain, kPercent);
  const std::string rest = fmt::format("(?:[{}:@/?]|{})*", kPlain, kPercent);
  return fmt::format(
      "[A-Za-z][0-9A-Za-z+.-]*:(?://{0}(?:/{1}*)*|/(?:{1}+(?:/{1}*)*)?|{1}+(?:/{1}*)*|)(?:\\?{2})?(?:#{2})?", authority,
      segment, rest);
}

// Returns a regex for durations (RFC 3339, appendix A).
std::string duration() {
  return "P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
         "(?:T(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?))?|"
         "T(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?))";
}

struct Format {
  std::string_view name;
  std::string (*pattern)();
};

constexpr std::string_view kUuid = "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}";

// Returns a regex for UUIDs of one version, for the formats uuid1 to uuid8 that pydantic writes.
template <char kVersion>
std::string uuid_of() {
  return fmt::format("[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{}[0-9A-Fa-f]{{3}}-[89ABab][0-9A-Fa-f]{{3}}-[0-9A-Fa-f]{{12}}",
                     kVersion);
}

constexpr Format kFormats[] = {
    {"date", [] { return std::string(kDate); }},
    {"time", [] { return std::string(kTime); }},
    {"date-time", date_time},
    {"duration", duration},
    {"uuid", [] { return std::string(kUuid); }},
    {"uuid1", uuid_of<'1'>},
    {"uuid3", uuid_of<'3'>},
    {"uuid4", uuid_of<'4'>},
    {"uuid5", uuid_of<'5'>},
    {"uuid6", uuid_of<'6'>},
    {"uuid7", uuid_of<'7'>},
    {"uuid8", uuid_of<'8'>},
    {"email", email},
    {"hostname", hostname},
    {"ipv4", ipv4},
    {"ipv6", ipv6},
    {"uri", uri},
};

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  for (const Format& known : kFormats)
    if (known.name == format) return known.pattern();
  return std::nullopt;
}

}  // namespace zinc_rt::grammar
