#include "server/openai_response.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"
#include "base/utf8.h"
#include "server/transport/http_head.h"

namespace zinc_rt::server {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string number(double value) {  // JSON has no infinities
  return std::isfinite(value) ? fmt::format("{:.6f}", value) : "-9999.0";
}

void put_token(std::string& out, const TokenNames& names, std::int32_t id, double logprob) {
  const auto bytes = names.bytes(id);
  fmt::format_to(Out(out), R"("token":{},"logprob":{},"bytes":[)", json_string(names.name(id)), number(logprob));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(Out(out), "{}{}", i == 0 ? "" : ",", static_cast<unsigned char>(bytes[i]));
  out += ']';
}

// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}
void put_chat_logprobs(std::string& out, const ChoiceText& choice, const TokenNames& names) {
  out += R"({"content":[)";
  for (std::size_t i = 0; i < choice.logprobs->size(); ++i) {
    const TokenLogprob& t = (*choice.logprobs)[i];
    out += i == 0 ? "{" : ",{";
    put_token(out, names, t.token_id, t.logprob);
    out += R"(,"top_logprobs":[)";
    for (std::size_t k = 0; k < t.top.size() && k < choice.n_top; ++k) {
      out += k == 0 ? "{" : ",{";
      put_token(out, names, t.top[k].first, t.top[k].second);
      out += '}';
    }
    out += "]}";
  }
  out += R"(],"refusal":null})";
}

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
void put_text_logprobs(std::string& out, const ChoiceText& choice, const TokenNames& names) {
  std::string tokens, values, tops, offsets;
  std::uint32_t offset = choice.text_offset;
  const auto add = [&](const TokenLogprob& t) {
    const char* comma = tokens.empty() ? "" : ",";
    const auto name = names.name(t.token_id);
    const bool has_value = !std::isnan(t.logprob);
    tokens += comma + json_string(name);
    values += comma + (has_value ? number(t.logprob) : "null");
    offsets += comma + std::to_string(offset);
    const auto bytes = names.bytes(t.token_id);
    for (const char c : bytes) offset += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    tops += comma;
    if (!has_value || choice.n_top == 0) {
      tops += "null";
      return;
    }
    tops += '{';
    for (std::size_t k = 0; k < t.top.size() && k < choice.n_top; ++k)
      tops +=
          fmt::format("{}{}:{}", k == 0 ? "" : ",", json_string(names.name(t.top[k].first)), number(t.top[k].second));
    tops += '}';
  };
  if (choice.echo_logprobs != nullptr)
    for (const auto& t : *choice.echo_logprobs) add(t);
  for (const auto& t : *choice.logprobs) add(t);
  fmt::format_to(Out(out), R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens,
                 values, tops, offsets);
}

void put_ids(std::string& out, const std::vector<std::int32_t>& ids) {
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) fmt::format_to(Out(out), "{}{}", i == 0 ? "" : ",", ids[i]);
  out += ']';
}

// The object of a choice; in a stream it has `delta` in place of `message`.
void put_choice(std::string& out, Api api, const ChoiceText& c, const TokenNames& names, bool is_stream) {
  fmt::format_to(Out(out), R"({{"index":{},)", c.index);
  if (api == Api::kChat) {
    out += is_stream ? R"("delta":{)" : R"("message":{"role":"assistant",)";
    if (c.has_role) out += R"("role":"assistant",)";
    const bool has_text = !is_stream || !c.text.empty() || c.has_role;
    if (!c.reasoning.empty()) {
      out += R"("reasoning_content":")";
      append_escaped(out, c.reasoning);
      out += has_text ? "\"," : "\"";
    }
    if (has_text) {
      out += R"("content":")";
      append_escaped(out, c.text);
      out += '"';
    }
    if (!is_stream) out += R"(,"refusal":null)";
    out += "},";
  } else {
    out += R"("text":")";
    append_escaped(out, c.text);
    out += "\",";
  }
  if (c.token_ids != nullptr) {
    out += R"("token_ids":)";
    put_ids(out, *c.token_ids);
    out += ',';
  }
  out += R"("logprobs":)";
  if (c.logprobs == nullptr)
    out += "null";
  else if (api == Api::kText)
    put_text_logprobs(out, c, names);
  else
    put_chat_logprobs(out, c, names);
  if (c.prompt_logprobs != nullptr) {
    ChoiceText prompt;
    prompt.logprobs = c.prompt_logprobs;
    prompt.n_top = c.n_prompt_top;
    out += R"(,"prompt_logprobs":)";
    put_text_logprobs(out, prompt, names);
  }
  if (c.finish_reason.empty())
    out += R"(,"finish_reason":null})";
  else
    fmt::format_to(Out(out), R"(,"finish_reason":"{}"}})", c.finish_reason);
}

void put_head(std::string& out, const AnswerHead& h, bool is_stream) {
  const char* object = h.api == Api::kChat   ? is_stream ? "chat.completion.chunk" : "chat.completion"
                       : h.api == Api::kText ? "text_completion"
                                             : "token_completion";
  fmt::format_to(Out(out), R"({{"id":"{}","object":"{}","created":{},"model":{},"system_fingerprint":"{}",)", h.id,
                 object, h.created_s, json_string(h.model), h.fingerprint);
  if (!h.service_tier.empty()) fmt::format_to(Out(out), R"("service_tier":"{}",)", h.service_tier);
}

}  // namespace

std::string TokenNames::name(std::int32_t id) const {
  const auto text = bytes(id);
  if (is_utf8(text)) return text;
  std::string out = "bytes:";
  for (const char c : text) fmt::format_to(Out(out), "\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::uint32_t n_characters(std::string_view utf8) {
  std::uint32_t n = 0;
  for (const char c : utf8) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::string usage_json(const Usage& u, std::uint32_t reasoning_tokens) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}},"completion_tokens_details":{{"reasoning_tokens":{}}}}})",
      u.prompt_tokens, u.completion_tokens, u.total_tokens, u.cached_tokens, reasoning_tokens);
}

std::string timings_json(const Timings& t) {
  std::string clamps;
  for (const auto& clamp : t.clamps) clamps += (clamps.empty() ? "" : ",") + json_string(clamp);
  return fmt::format(
      R"({{"queue_ms":{:.3f},"prefill_ms":{:.3f},"decode_ms":{:.3f},"prefill_tokens_per_s":{:.2f},"decode_tokens_per_s":{:.2f},"clamps":[{}]}})",
      t.queue_ms, t.prefill_ms, t.decode_ms, t.prefill_tokens_per_s, t.decode_tokens_per_s, clamps);
}

std::string chunk_event(const AnswerHead& head, const ChoiceText& choice, const TokenNames& names,
                        bool with_null_usage) {
  std::string out = "data: ";
  put_head(out, head, true);
  out += R"("choices":[)";
  put_choice(out, head.api, choice, names, true);
  out += with_null_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
  return out;
}

std::string usage_event(const AnswerHead& head, const std::string& usage, const std::string& timings) {
  std::string out = "data: ";
  put_head(out, head, true);
  fmt::format_to(Out(out), R"("choices":[],"usage":{})", usage);
  if (!timings.empty()) fmt::format_to(Out(out), R"(,"timings":{})", timings);
  return out += "}\n\n";
}

std::string whole_answer(const AnswerHead& head, const std::vector<ChoiceText>& choices, const TokenNames& names,
                         const std::string& usage, const std::string& timings) {
  std::string out;
  put_head(out, head, false);
  out += R"("choices":[)";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += ',';
    put_choice(out, head.api, choices[i], names, false);
  }
  fmt::format_to(Out(out), R"(],"usage":{})", usage);
  if (!timings.empty()) fmt::format_to(Out(out), R"(,"timings":{})", timings);
  return out += '}';
}

}  // namespace zinc_rt::server
