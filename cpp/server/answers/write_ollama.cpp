// Writes the answers of Ollama's /api/chat and /api/generate: one JSON object, or one object per line of a stream.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/strict_json.h"
#include "server/answers/answer_writer.h"
#include "server/answers/write_logprobs.h"
#include "server/api/error_forms.h"

namespace zinc_rt::server {
namespace {

class OllamaWriter final : public AnswerWriter {
 public:
  explicit OllamaWriter(const WriterInput& input) : head_(input.head), call_(input.call), names_(input.names) {}

  const char* stream_type() const override { return "application/x-ndjson"; }

  std::string part(const AnswerPart& part) override {
    std::string text, thinking, out;
    if (part.event.logprob) logprobs_.push_back(*part.event.logprob);
    for (const auto& piece : part.event.pieces) {
      if (piece.kind == PieceKind::kReasoning && call_.include_reasoning) thinking += piece.text;
      if (piece.kind == PieceKind::kText) text += piece.text;
      if (piece.kind == PieceKind::kCallBegin) name_ = piece.text, arguments_.clear();
      if (piece.kind == PieceKind::kCallArguments) arguments_ += piece.text;
      if (piece.kind != PieceKind::kCallEnd) continue;
      // Each call is written in a line of its own, because Ollama's clients expect this.
      if (!text.empty() || !thinking.empty()) out += line(text, thinking, {}, "false}");
      text.clear();
      thinking.clear();
      out += line({}, {}, "[" + call_json(name_, arguments_) + "]", "false}");
    }
    if (part.event.pieces.empty()) text = part.event.text;  // for raw prompts, whose output is not parsed
    if (!text.empty() || !thinking.empty()) out += line(text, thinking, {}, "false}");
    return out;
  }
  std::string end_choice(const AnswerChoice& choice, bool) override {
    reason_ = choice.completion.finish_reason;
    return {};
  }
  std::string end(const AnswerTotals& totals) override { return line({}, {}, {}, last(totals)); }
  std::string failed(const ApiError& error) override { return ollama_error(error).body + "\n"; }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) override {
    const Completion& c = choices[0].completion;
    reason_ = c.finish_reason;
    logprobs_ = c.logprobs;
    std::string calls;
    for (const auto& call : c.tool_calls) calls += (calls.empty() ? "[" : ",") + call_json(call.name, call.arguments);
    if (!calls.empty()) calls += ']';
    auto out = line(c.text, call_.include_reasoning ? c.reasoning : "", calls, last(totals));
    out.pop_back();
    return out;
  }

 private:
  static std::string call_json(const std::string& name, const std::string& arguments) {
    const auto value = read_any_json(arguments);
    return fmt::format(R"({{"function":{{"name":{},"arguments":{}}}}})", json_string(name),
                       value && value->is_object() ? as_text(*value) : "{}");
  }

  std::string line(const std::string& text, const std::string& thinking, const std::string& calls,
                   const std::string& done) {
    auto out = fmt::format(R"({{"model":{},"created_at":"{}",)", json_string(head_.model),
                           utc_time(std::chrono::system_clock::now()));
    const auto thought = thinking.empty() ? std::string() : R"(,"thinking":)" + json_string(thinking);
    if (call_.api == Api::kOllamaChat)
      out += fmt::format(R"("message":{{"role":"assistant","content":{}{}{}}})", json_string(text), thought,
                         calls.empty() ? "" : R"(,"tool_calls":)" + calls);
    else
      out += R"("response":)" + json_string(text) + thought;
    // Writes the log-probabilities of the tokens since the last line, even if the text of these tokens is held back.
    if (call_.wants_logprobs && !logprobs_.empty()) {
      out += R"(,"logprobs":)" + logprobs_json(logprobs_, *call_.n_top, names_);
      logprobs_.clear();
    }
    return out + R"(,"done":)" + done + "\n";
  }

  // Returns the fields after "done" in the last line. Times are in ns.
  std::string last(const AnswerTotals& totals) const {
    const Timings& t = totals.timings;
    const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6); };
    return fmt::format(
        R"(true,"done_reason":"{}","total_duration":{},"load_duration":0,"prompt_eval_count":{},"prompt_eval_duration":{},"eval_count":{},"eval_duration":{}}})",
        reason_, ns(t.prefill_ms + t.decode_ms), totals.usage.prompt_tokens, ns(t.prefill_ms - t.queue_ms),
        totals.usage.completion_tokens, ns(t.decode_ms));
  }

  const AnswerHead& head_;
  const GenerationCall& call_;
  const TokenNames& names_;
  std::vector<TokenLogprob> logprobs_;  // log-probabilities that are not written yet
  std::string name_, arguments_, reason_;
};

}  // namespace

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06d}Z", fmt::gmtime(static_cast<std::time_t>(us / 1000000)), us % 1000000);
}

std::string ollama_loaded(Api api, const std::string& model, bool is_unloaded) {
  return fmt::format(R"({{"model":{},"created_at":"{}",{},"done":true,"done_reason":"{}"}})", json_string(model),
                     utc_time(std::chrono::system_clock::now()),
                     api == Api::kOllamaChat ? R"("message":{"role":"assistant","content":""})" : R"("response":"")",
                     is_unloaded ? "unload" : "load");
}

std::unique_ptr<AnswerWriter> write_ollama(const WriterInput& input) {
  return std::make_unique<OllamaWriter>(input);
}

}  // namespace zinc_rt::server
