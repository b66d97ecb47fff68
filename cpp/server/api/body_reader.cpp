#include "server/api/body_reader.h"

#include <algorithm>
#include <cmath>

#include "base/json_number.h"

namespace zinc_rt::server {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr std::size_t kMaxBias = 1024;

std::size_t utf8_length(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void read_bias(BodyReader& r, Request& request) {
  const Json* bias = r.fields().get("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object() || bias->size() > kMaxBias)
    return r.wrong("logit_bias",
                   fmt::format("{} is given, an object of at most {} token ids wanted", show(*bias), kMaxBias));
  for (const auto& [key, value] : bias->items()) {
    const bool is_id = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos &&
                       (key.size() == 1 || key[0] != '0');  // else "5" and "05" would name one token twice
    if (!is_id) return r.wrong("logit_bias", fmt::format("{} is no token id", show(key)));
    const double bias = is_json_number(value) ? number_value(value) : NAN;
    if (!(bias >= -100 && bias <= 100))
      return r.wrong("logit_bias", fmt::format("{} for token {}, -100 to 100 allowed", show(value), key));
    request.logit_bias[std::stoi(key)] = static_cast<float>(bias);
  }
}

}  // namespace

void read_stop(BodyReader& r, Request& request) {
  const Json* stop = r.fields().get("stop");
  if (stop == nullptr) return;
  const auto add = [&](const std::string& place, const Json& one) {
    if (one.is_string() && !one.get_ref<const std::string&>().empty())
      request.stop.push_back(one.get<std::string>());
    else
      r.wrong_entry("stop", place, show(one) + " is given, a text or a list of texts that are not empty wanted");
  };
  if (!stop->is_array()) return add("stop", *stop);
  if (stop->size() > 16) return r.wrong("stop", fmt::format("{} entries, at most 16 allowed", stop->size()));
  for (std::size_t i = 0; i < stop->size(); ++i) add(fmt::format("stop[{}]", i), (*stop)[i]);
}

void read_temperature(BodyReader& r, Request& q, double most) {
  r.into(q.temperature, r.number("temperature", 0, most));
  if (q.temperature > 0 && q.temperature < 1e-4f) q.temperature = 0;
  r.into(q.top_p, r.number("top_p", 0, 1));
}

void read_top_k(BodyReader& r, Request& q) {
  if (const auto k = r.integer("top_k", -1, INT32_MAX)) q.top_k = *k < 0 ? 0 : static_cast<std::uint32_t>(*k);
}

void read_sampling(BodyReader& r, Request& q, double most, const char* repetition_penalty) {
  read_temperature(r, q, most);
  read_top_k(r, q);
  r.into(q.min_p, r.number("min_p", 0, 1));
  r.into(q.typical_p, r.number("typical_p", 0, 1));
  r.into(q.repetition_penalty, r.number(repetition_penalty, 0.01, 100));
  r.into(q.presence_penalty, r.number("presence_penalty", -2, 2));
  r.into(q.frequency_penalty, r.number("frequency_penalty", -2, 2));
}

void read_seed(BodyReader& r, Request& q) {
  if (const auto seed = r.integer("seed", INT64_MIN, INT64_MAX)) q.seed = static_cast<std::uint64_t>(*seed);
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

void read_common(BodyReader& r, GenerationCall& call, Request& q) {
  r.into(q.model, r.string("model", 4096));
  r.into(call.stream, r.boolean("stream"));
  r.object("stream_options", [&](BodyReader& options) {
    if (!call.stream) r.wrong("stream_options", "only with \"stream\": true");
    options.into(call.include_usage, options.boolean("include_usage"));
    options.into(call.resumable, options.boolean("resumable"));
    options.refuse("include_obfuscation", "chunks are not padded", {false});
  });
  read_sampling(r, q, 2, "repetition_penalty");
  read_bias(r, q);
  read_seed(r, q);
  r.into(q.n, r.integer("n", 1, 128));
  read_stop(r, q);
  if (auto ids = r.take(r.fields().get_ids("stop_token_ids", kMaxBias))) q.stop_token_ids = std::move(*ids);
  r.into(q.include_stop_str_in_output, r.boolean("include_stop_str_in_output"));
  r.into(q.ignore_eos, r.boolean("ignore_eos"));
  r.into(q.skip_special_tokens, r.boolean("skip_special_tokens"));
  r.into(q.min_tokens, r.integer("min_tokens", 0, kMaxTokens));
  if (const auto n = r.integer("prompt_logprobs", 0, 20)) {
    if (call.stream) r.wrong("prompt_logprobs", "it cannot be streamed");
    q.prompt_logprobs = call.prompt_logprobs = static_cast<std::uint32_t>(*n);
  }
  if (const auto ms = r.number("deadline_ms", 0, 1e9)) q.deadline_ms = *ms;
  r.into(q.cache_salt, r.string("cache_salt", 256));
  r.into(call.return_token_ids, r.boolean("return_token_ids"));
  r.into(q.return_logits_hash, r.boolean("return_logits_hash"));
  r.into(call.wants_timings, r.boolean("timings"));
  read_service_tier(r, {"auto", "default", "flex", "priority", "interactive", "standard", "batch"}, call, q);
  read_callers_names(r);
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
