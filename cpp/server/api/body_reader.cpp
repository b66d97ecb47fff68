#include "server/api/body_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/json_number.h"

namespace zinc_rt::server {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;

std::size_t utf8_length(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Reads one field into a member of the request, by the member's type.
struct IntoMember {
  BodyReader& r;
  const RequestField& field;
  Request& request;

  void operator()(std::monostate) const {}
  void operator()(float Request::* member) const { r.into(request.*member, number()); }
  void operator()(double Request::* member) const { r.into(request.*member, number()); }
  // If the field's bounds allow values below 0, such a value means "off".
  void operator()(std::uint32_t Request::* member) const {
    if (const auto n = integer()) request.*member = static_cast<std::uint32_t>(std::max<std::int64_t>(*n, 0));
  }
  void operator()(bool Request::* member) const { r.into(request.*member, r.boolean(field.name)); }
  void operator()(std::string Request::* member) const {
    r.into(request.*member, r.string(field.name, static_cast<std::size_t>(most())));
  }
  void operator()(std::optional<bool> Request::* member) const {
    if (const auto given = r.boolean(field.name)) request.*member = *given;
  }
  void operator()(std::optional<std::uint32_t> Request::* member) const {
    if (const auto n = integer()) request.*member = static_cast<std::uint32_t>(*n);
  }
  void operator()(std::optional<std::uint64_t> Request::* member) const {
    if (const auto n = integer()) request.*member = static_cast<std::uint64_t>(*n);
  }
  // The field is a text or a list of texts.
  void operator()(std::vector<std::string> Request::* member) const {
    const Json* given = r.fields().get(field.name);
    if (given == nullptr) return;
    const auto add = [&](const std::string& place, const Json& one) {
      if (one.is_string() && !one.get_ref<const std::string&>().empty())
        (request.*member).push_back(one.get<std::string>());
      else
        r.wrong_entry(field.name, place, show(one) + " is given, a text or a list of texts that are not empty wanted");
    };
    if (!given->is_array()) return add(field.name, *given);
    if (static_cast<double>(given->size()) > most())
      return r.wrong(field.name, fmt::format("{} entries, at most {} allowed", given->size(), most()));
    for (std::size_t i = 0; i < given->size(); ++i) add(fmt::format("{}[{}]", field.name, i), (*given)[i]);
  }
  void operator()(std::vector<std::int32_t> Request::* member) const {
    if (auto ids = r.take(r.fields().get_ids(field.name, static_cast<std::size_t>(most()))))
      request.*member = std::move(*ids);
  }
  void operator()(std::map<std::int32_t, float> Request::* member) const {
    const Json* bias = r.fields().get(field.name);
    if (bias == nullptr) return;
    if (!bias->is_object() || static_cast<double>(bias->size()) > most())
      return r.wrong(field.name,
                     fmt::format("{} is given, an object of at most {} token ids wanted", show(*bias), most()));
    for (const auto& [key, value] : bias->items()) {
      const bool is_id = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos &&
                         (key.size() == 1 || key[0] != '0');  // so that "5" and "05" cannot both name token 5
      if (!is_id) return r.wrong(field.name, fmt::format("{} is no token id", show(key)));
      const double of_key = is_json_number(value) ? number_value(value) : NAN;
      if (!(of_key >= -100 && of_key <= 100))
        return r.wrong(field.name, fmt::format("{} for token {}, -100 to 100 allowed", show(value), key));
      (request.*member)[std::stoi(key)] = static_cast<float>(of_key);
    }
  }

 private:
  double most() const { return field.api_bounds().most; }
  std::optional<double> number() const { return r.number(field.name, field.api_bounds().least, most()); }
  std::optional<std::int64_t> integer() const {
    // The bounds are doubles, and no double equals 2^63 - 1.
    const auto whole = [](double bound) { return bound >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(bound); };
    return r.integer(field.name, whole(field.api_bounds().least), whole(most()));
  }
};

// Returns the names of the fields that the table lists for the API `taker`, sorted.
const std::set<std::string_view>& names_of(RequestField::TakenBy taker) {
  static const auto all = [] {
    std::map<std::uint32_t, std::set<std::string_view>> names;
    for (const RequestField& field : request_fields())
      for (std::uint32_t bit = 1; bit <= RequestField::kCommand; bit *= 2)
        if ((field.taken_by & bit) != 0) names[bit].insert(field.name);
    return names;
  }();
  return all.at(taker);
}

}  // namespace

ApiResult<void> BodyReader::finish() {
  if (!error_)
    if (const auto others = fields_.expect_no_others(ignored_); !others) error_ = others.error();
  if (error_) return std::unexpected(*error_);
  if (!taker_) return {};
  // A field that was added only to a reader, or only to the table, fails every request, so that a test finds it.
  const auto& rows = names_of(*taker_);
  const auto complain = [&](std::string_view name, const char* what) {
    return std::unexpected(make_error(
        500, fmt::format("[request] {} of {}: the {}", name, taker_names(static_cast<std::uint32_t>(*taker_)), what)));
  };
  for (const auto& name : fields_.known())
    if (!rows.contains(name) && std::ranges::find(rowless_, name) == rowless_.end())
      return complain(name, "reader has it, the table of fields has not");
  for (const auto name : rows)
    if (!fields_.known().contains(name)) return complain(name, "table of fields has it, the reader has not");
  return {};
}

void read_members(BodyReader& r, RequestField::TakenBy taker, Request& request) {
  for (const RequestField& field : request_fields())
    if ((field.taken_by & taker) != 0) std::visit(IntoMember{r, field, request}, field.member);
  // With so low a temperature, sampling would always pick the most likely token, so it is set to 0 (greedy).
  if (request.temperature > 0 && request.temperature < 1e-4f) request.temperature = 0;
}

void read_effort(BodyReader& r, const char* name, Json& variables) {
  const auto effort = r.take(r.fields().get_choice(name, {"none", "minimal", "low", "medium", "high", "xhigh", "max"}));
  if (!effort) return;
  if (*effort == "none") variables["enable_thinking"] = false;
  variables["reasoning_effort"] = *effort;
}

void read_service_tier(BodyReader& r, const std::vector<std::string>& names, GenerationCall& call, Request& q) {
  const auto tier = r.take(r.fields().get_choice("service_tier", names));
  if (!tier) return;
  call.service_tier = *tier;
  // flex requests a lower class than the tenant's. priority requests interactive, within the tenant's class.
  if (*tier == "flex")
    q.qos = "batch";
  else if (*tier == "priority")
    q.qos = "interactive";
  else if (*tier != "auto" && *tier != "default")
    q.qos = *tier;
}

void read_callers_names(BodyReader& r) {
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) static_cast<void>(r.string(name, 1024));
}

const Json* read_metadata(BodyReader& r) {
  constexpr std::size_t kMostEntries = 16, kMostOfKey = 64, kMostOfValue = 512;  // characters
  const Json* given = r.fields().get("metadata");
  if (given == nullptr) return nullptr;
  std::string complaint;
  if (!given->is_object())
    complaint = show(*given) + " is given, an object wanted";
  else if (given->size() > kMostEntries)
    complaint = fmt::format("{} entries are given, {} allowed", given->size(), kMostEntries);
  else
    for (const auto& [key, value] : given->items())
      if (const auto n = utf8_length(key); n > kMostOfKey)
        complaint = fmt::format("a key has {} characters, {} allowed", n, kMostOfKey);
      else if (!value.is_string())
        complaint = fmt::format("{} is given as a value, a string wanted", show(value));
      else if (const auto m = utf8_length(value.get_ref<const std::string&>()); m > kMostOfValue)
        complaint = fmt::format("a value has {} characters, {} allowed", m, kMostOfValue);
  if (complaint.empty()) return given;
  r.wrong("metadata", complaint);
  return nullptr;
}

void read_common(BodyReader& r, RequestField::TakenBy taker, GenerationCall& call, Request& q) {
  read_members(r, taker, q);
  r.into(call.stream, r.boolean("stream"));
  r.object("stream_options", [&](BodyReader& options) {
    if (!call.stream) r.wrong("stream_options", "only with \"stream\": true");
    options.into(call.include_usage, options.boolean("include_usage"));
    options.into(call.resumable, options.boolean("resumable"));
    options.refuse("include_obfuscation", "chunks are not padded", {false});
  });
  call.prompt_logprobs = q.prompt_logprobs;
  if (call.stream && call.prompt_logprobs) r.wrong("prompt_logprobs", "it cannot be streamed");
  r.into(call.return_token_ids, r.boolean("return_token_ids"));
  r.into(call.wants_timings, r.boolean("timings"));
  read_service_tier(r, {"auto", "default", "flex", "priority", "interactive", "standard", "batch"}, call, q);
  read_callers_names(r);
}

void read_logprobs(BodyReader& r, GenerationCall& call, Request& request) {
  r.into(call.wants_logprobs, r.boolean("logprobs"));
  const auto top = r.integer("top_logprobs", 0, 20);
  if (top && *top > 0 && !call.wants_logprobs) r.wrong("top_logprobs", "only with \"logprobs\": true");
  call.n_top = static_cast<std::uint32_t>(top.value_or(0));
  if (call.wants_logprobs) request.logprobs = std::max(1u, *call.n_top);
}

void read_max_tokens(BodyReader& r, Request& q, std::initializer_list<const char*> names, std::uint32_t absent,
                     bool may_be_0) {
  q.max_tokens = absent;
  bool is_given = false;
  for (const char* name : names) {
    const auto n = r.integer(name, may_be_0 ? 0 : 1, kMaxTokens);
    if (!n) continue;
    if (is_given && q.max_tokens != *n) r.wrong(name, "another limit is given beside it");
    q.max_tokens = static_cast<std::uint32_t>(*n);
    is_given = true;
  }
  if (q.min_tokens > q.max_tokens)
    r.wrong("min_tokens", fmt::format("{} is more than max_tokens {}", q.min_tokens, q.max_tokens));
}

}  // namespace zinc_rt::server
