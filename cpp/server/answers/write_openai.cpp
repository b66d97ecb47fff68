// Writes the answers of OpenAI's chats and completions, and of /generate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "base/utf8.h"
#include "server/answers/answer_writer.h"
#include "server/answers/openai_json.h"
#include "server/answers/write_logprobs.h"

namespace zinc_rt::server {
namespace {

using Out = std::back_insert_iterator<std::string>;

// ChoiceText holds what put_choice() writes about a choice: the whole choice, or what one event of a stream adds to it.
struct ChoiceText {
  std::uint32_t index = 0;
  std::string text, reasoning;
  std::string calls;                                           // a JSON list of tool calls; empty: none
  const std::vector<TokenLogprob>* logprobs = nullptr;         // null: not requested
  const std::vector<TokenLogprob>* echo_logprobs = nullptr;    // the prompt's; listed before the others
  const std::vector<TokenLogprob>* prompt_logprobs = nullptr;  // the prompt's; written in a separate field
  std::uint32_t n_top = 0, n_prompt_top = 0;                   // how many entries of `top` are written
  std::uint32_t text_offset = 0;  // for completions: how many characters were sent before this text
  const std::vector<std::int32_t>* token_ids = nullptr;       // null: not requested
  const std::vector<std::uint64_t>* logits_hashes = nullptr;  // null: not requested
  std::string finish_reason;                                  // empty until the choice has ended
  bool has_role = false;                                      // set for the first event of a chat's stream
};

// Appends {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}, the form of chats.
void put_chat_logprobs(std::string& out, const ChoiceText& choice, const TokenNames& names) {
  out += R"({"content":)" + logprobs_json(*choice.logprobs, choice.n_top, names) + R"(,"refusal":null})";
}

// Appends {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, the form of completions.
void put_text_logprobs(std::string& out, const ChoiceText& choice, const TokenNames& names) {
  std::string tokens, values, tops, offsets;
  std::uint32_t offset = choice.text_offset;
  const auto add = [&](const TokenLogprob& t) {
    const char* comma = tokens.empty() ? "" : ",";
    const auto name = names.name(t.token_id);
    const bool has_value = !std::isnan(t.logprob);
    tokens += comma + json_string(name);
    values += comma + (has_value ? logprob_number(t.logprob) : "null");
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
      tops += fmt::format("{}{}:{}", k == 0 ? "" : ",", json_string(names.name(t.top[k].first)),
                          logprob_number(t.top[k].second));
    tops += '}';
  };
  if (choice.echo_logprobs != nullptr)
    for (const auto& t : *choice.echo_logprobs) add(t);
  for (const auto& t : *choice.logprobs) add(t);
  fmt::format_to(Out(out), R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens,
                 values, tops, offsets);
}

// Appends "token_ids": [...] and "logits_hash": [...], if the client requested them. A hash is written as 16
// hexadecimal digits, because many JSON readers round 64-bit numbers.
void put_token_lists(std::string& out, const ChoiceText& c) {
  if (c.token_ids != nullptr) fmt::format_to(Out(out), R"("token_ids":[{}],)", fmt::join(*c.token_ids, ","));
  if (c.logits_hashes == nullptr) return;
  out += R"("logits_hash":[)";
  for (const std::uint64_t hash : *c.logits_hashes)
    fmt::format_to(Out(out), "{}\"{:016x}\"", out.back() == '[' ? "" : ",", hash);
  out += "],";
}

// Appends the object of a choice. In a stream the object has the member `delta` instead of `message`.
void put_choice(std::string& out, Api api, const ChoiceText& c, const TokenNames& names, bool is_stream) {
  fmt::format_to(Out(out), R"({{"index":{},)", c.index);
  if (api == Api::kChat) {
    out += is_stream ? R"("delta":{)" : R"("message":{"role":"assistant",)";
    if (c.has_role) out += R"("role":"assistant",)";
    if (!c.reasoning.empty()) {
      out += R"("reasoning_content":")";
      append_escaped(out, c.reasoning);
      out += "\",";
    }
    if (c.text.empty() && !c.calls.empty()) {
      if (!is_stream || c.has_role) out += R"("content":null,)";
    } else if (!is_stream || !c.text.empty() || c.has_role) {
      out += R"("content":")";
      append_escaped(out, c.text);
      out += "\",";
    }
    if (!c.calls.empty()) out += R"("tool_calls":)" + c.calls + ',';
    if (!is_stream) out += R"("refusal":null,)";
    if (out.back() == ',') out.pop_back();
    out += "},";
  } else {
    out += R"("text":")";
    append_escaped(out, c.text);
    out += "\",";
  }
  put_token_lists(out, c);
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

void put_head(std::string& out, const AnswerHead& h, Api api, bool is_stream) {
  const char* object = api == Api::kChat   ? is_stream ? "chat.completion.chunk" : "chat.completion"
                       : api == Api::kText ? "text_completion"
                                           : "token_completion";
  fmt::format_to(Out(out), R"({{"id":"{}","object":"{}","created":{},"model":{},"system_fingerprint":"{}",)", h.id,
                 object, h.created_s, json_string(h.model), h.fingerprint);
  if (!h.service_tier.empty()) fmt::format_to(Out(out), R"("service_tier":"{}",)", h.service_tier);
}

// Returns an element of a stream's tool_calls: the beginning of a call, or a piece of its arguments. Returns an empty
// text if the piece adds nothing.
std::string call_delta(const OutputPiece& piece) {
  if (piece.kind == PieceKind::kCallBegin)
    return fmt::format(R"([{{"index":{},"id":"{}","type":"function","function":{{"name":{},"arguments":""}}}}])",
                       piece.call, piece.id, json_string(piece.text));
  if (piece.kind == PieceKind::kCallArguments)
    return fmt::format(R"([{{"index":{},"function":{{"arguments":{}}}}}])", piece.call, json_string(piece.text));
  return {};
}

std::string calls_json(const std::vector<ToolCall>& calls) {
  if (calls.empty()) return {};
  std::string out;
  for (const auto& call : calls)
    out += fmt::format(R"({}{{"id":"{}","type":"function","function":{{"name":{},"arguments":{}}}}})",
                       out.empty() ? '[' : ',', call.id, json_string(call.name), json_string(call.arguments));
  return out + ']';
}

class OpenAiWriter final : public AnswerWriter {
 public:
  explicit OpenAiWriter(const WriterInput& input)
      : head_(input.head),
        call_(input.call),
        names_(input.names),
        n_characters_(input.call.requests.size() * input.call.requests.front().n) {}

  std::string part(const AnswerPart& part) override {
    auto text = of(part.index);
    text.text = part.echo + part.event.text;
    std::vector<std::string> calls;
    for (const auto& piece : part.event.pieces) {
      if (piece.kind == PieceKind::kReasoning && call_.include_reasoning) text.reasoning += piece.text;
      if (auto delta = call_delta(piece); !delta.empty()) calls.push_back(std::move(delta));
    }
    std::vector<TokenLogprob> logprobs;
    if (call_.wants_logprobs) {
      if (part.event.logprob) logprobs.push_back(*part.event.logprob);
      text.logprobs = &logprobs;
    }
    std::vector<std::int32_t> ids;
    if (call_.return_token_ids) {
      if (part.event.is_token) ids.push_back(part.event.token_id);
      text.token_ids = &ids;
    }
    std::vector<std::uint64_t> hashes;
    if (wants_hashes()) {
      if (part.event.logits_hash) hashes.push_back(*part.event.logits_hash);
      text.logits_hashes = &hashes;
    }
    text.has_role = part.is_first && call_.api == Api::kChat;
    text.text_offset = n_characters_[part.index];
    n_characters_[part.index] += n_characters(text.text);
    if (!calls.empty()) text.calls = calls[0];
    std::string out;
    if (!text.text.empty() || !text.reasoning.empty() || !text.calls.empty() || text.has_role || !logprobs.empty() ||
        !ids.empty() || !hashes.empty())
      out = chunk(text);
    // Each chunk contains one call or one piece of a call, because not all clients can read more per chunk.
    for (std::size_t i = 1; i < calls.size(); ++i) {
      auto more = of(part.index);
      more.calls = std::move(calls[i]);
      out += chunk(more);
    }
    return out;
  }

  std::string end_choice(const AnswerChoice& choice, bool is_first) override {
    auto text = of(choice.index);
    if (is_first) text.text = choice.echo;
    text.has_role = is_first && call_.api == Api::kChat;
    text.finish_reason = finish_of(choice.completion);
    return chunk(text);
  }

  std::string end(const AnswerTotals& totals) override {
    std::string out;
    if (call_.include_usage) {
      out = "data: ";
      put_head(out, head_, call_.api, true);
      out += R"("choices":[],)";
      put_usage(out, totals);
      out += "}\n\n";
    }
    return out + "data: [DONE]\n\n";
  }

  std::string failed(const ApiError& error) override { return "data: " + error_json(error) + "\n\n"; }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) override {
    std::string out;
    put_head(out, head_, call_.api, false);
    out += R"("choices":[)";
    for (const auto& choice : choices) {
      if (choice.index > 0) out += ',';
      const Completion& c = choice.completion;
      auto text = of(choice.index);
      text.text = choice.echo + c.text;
      if (call_.include_reasoning) text.reasoning = c.reasoning;
      text.calls = calls_json(c.tool_calls);
      if (call_.wants_logprobs) text.logprobs = &c.logprobs;
      if (call_.echo) text.echo_logprobs = &choice.first.prompt_logprobs;
      if (call_.prompt_logprobs) {
        text.prompt_logprobs = &choice.first.prompt_logprobs;
        text.n_prompt_top = *call_.prompt_logprobs;
      }
      if (call_.return_token_ids) text.token_ids = &c.token_ids;
      if (wants_hashes()) text.logits_hashes = &c.logits_hashes;
      text.finish_reason = finish_of(c);
      put_choice(out, call_.api, text, names_, false);
    }
    out += "],";
    put_usage(out, totals);
    return out += '}';
  }

 private:
  bool wants_hashes() const { return call_.requests.front().return_logits_hash; }
  ChoiceText of(std::uint32_t index) const {
    ChoiceText text;
    text.index = index;
    text.n_top = call_.n_top.value_or(call_.requests.front().logprobs);
    return text;
  }
  // If the client named the tool that must be called, the finish reason is "stop" and not "tool_calls", as in OpenAI's
  // API.
  std::string finish_of(const Completion& c) const {
    if (c.finish_reason.empty()) return "error";
    return c.finish_reason == "stop" && !c.tool_calls.empty() && !call_.names_the_tool ? "tool_calls" : c.finish_reason;
  }
  std::string chunk(const ChoiceText& text) const {
    std::string out = "data: ";
    put_head(out, head_, call_.api, true);
    out += R"("choices":[)";
    put_choice(out, call_.api, text, names_, true);
    return out += call_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
  }
  void put_usage(std::string& out, const AnswerTotals& totals) const {
    out += R"("usage":)" + usage_json(totals.usage);
    if (call_.wants_timings) out += R"(,"timings":)" + timings_json(totals.timings);
  }

  const AnswerHead& head_;
  const GenerationCall& call_;
  const TokenNames& names_;
  std::vector<std::uint32_t> n_characters_;  // index: choice; how many characters were sent
};

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

std::string usage_json(const Usage& u) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}},"completion_tokens_details":{{"reasoning_tokens":{},"accepted_prediction_tokens":{},"rejected_prediction_tokens":{}}}}})",
      u.prompt_tokens, u.completion_tokens, u.total_tokens, u.cached_tokens, u.reasoning_tokens,
      u.accepted_prediction_tokens, u.rejected_prediction_tokens);
}

std::string timings_json(const Timings& t) {
  std::string clamps;
  for (const auto& clamp : t.clamps) clamps += (clamps.empty() ? "" : ",") + json_string(clamp);
  return fmt::format(
      R"({{"queue_ms":{:.3f},"prefill_ms":{:.3f},"decode_ms":{:.3f},"prefill_tokens_per_s":{:.2f},"decode_tokens_per_s":{:.2f},"draft_tokens":{},"accepted_draft_tokens":{},"clamps":[{}]}})",
      t.queue_ms, t.prefill_ms, t.decode_ms, t.prefill_tokens_per_s, t.decode_tokens_per_s, t.draft_tokens,
      t.accepted_draft_tokens, clamps);
}

std::unique_ptr<AnswerWriter> write_openai(const WriterInput& input) {
  return std::make_unique<OpenAiWriter>(input);
}

}  // namespace zinc_rt::server
