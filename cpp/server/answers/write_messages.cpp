// Writes the answers of /v1/messages, Anthropic's API: a list of blocks, whole or block by block.
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/strict_json.h"
#include "server/answers/answer_writer.h"
#include "server/api/error_forms.h"

namespace zinc_rt::server {
namespace {

std::string event(const char* name, const std::string& fields) {
  return fmt::format("event: {}\ndata: {{\"type\":\"{}\"{}{}}}\n\n", name, name, fields.empty() ? "" : ",", fields);
}

// Returns the usage as JSON. In Anthropic's API, input_tokens excludes the prompt tokens from the cache.
std::string usage_of(const Usage& u) {
  return fmt::format(
      R"({{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},"output_tokens":{},"service_tier":"standard"}})",
      u.prompt_tokens - u.cached_tokens, u.cached_tokens, u.completion_tokens);
}

// Returns a call's arguments as an object. If the arguments are not an object, for example because the answer was cut
// off, returns {}.
std::string input_of(const std::string& arguments) {
  const auto value = read_any_json(arguments);
  return value && value->is_object() ? as_text(*value) : "{}";
}

class MessagesWriter final : public AnswerWriter {
 public:
  explicit MessagesWriter(const WriterInput& input) : head_(input.head), call_(input.call) {}

  std::string begin(const Usage& usage) override {
    return event("message_start", R"("message":)" + message("[]", "null", "null", usage_of(usage))) + event("ping", "");
  }

  std::string part(const AnswerPart& part) override {
    std::string out;
    for (const auto& piece : part.event.pieces) put(out, piece);
    return out;
  }

  std::string end_choice(const AnswerChoice& choice, bool) override {
    std::string out;
    close(out);
    stop_ = reason_of(choice.completion);
    stop_sequence_ = sequence_of(choice.completion);
    return out;
  }

  std::string end(const AnswerTotals& totals) override {
    return event("message_delta", fmt::format(R"("delta":{{"stop_reason":{},"stop_sequence":{}}},"usage":{})", stop_,
                                              stop_sequence_, usage_of(totals.usage))) +
           event("message_stop", "");
  }

  std::string failed(const ApiError& error) override {
    return "event: error\ndata: " + messages_error(error).body + "\n\n";
  }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) override {
    const Completion& c = choices[0].completion;
    std::string blocks;
    const auto add = [&](const std::string& block) { blocks += (blocks.empty() ? "" : ",") + block; };
    for (const auto& piece : c.pieces) {
      if (piece.kind == PieceKind::kText) add(R"({"type":"text","text":)" + json_string(piece.text) + "}");
      if (piece.kind == PieceKind::kReasoning)
        add(fmt::format(R"({{"type":"thinking","thinking":{},"signature":"{}"}})",
                        json_string(call_.include_reasoning ? piece.text : ""), kSignature));
      if (piece.kind != PieceKind::kCallBegin) continue;
      const ToolCall& call = c.tool_calls[piece.call];
      add(fmt::format(R"({{"type":"tool_use","id":"{}","name":{},"input":{}}})", call.id, json_string(call.name),
                      input_of(call.arguments)));
    }
    return message("[" + blocks + "]", reason_of(c), sequence_of(c), usage_of(totals.usage));
  }

 private:
  std::string message(const std::string& content, const std::string& reason, const std::string& sequence,
                      const std::string& usage) const {
    return fmt::format(
        R"({{"id":"{}","type":"message","role":"assistant","model":{},"content":{},"stop_reason":{},"stop_sequence":{},"usage":{}}})",
        head_.id, json_string(head_.model), content, reason, sequence, usage);
  }
  // Clients send a thinking block back only if it has a signature. The signature is a constant, because the block
  // itself has the text.
  static constexpr const char* kSignature = "zinc_rt";

  static std::string reason_of(const Completion& c) {
    if (c.finish_reason == "length") return R"("max_tokens")";
    if (!c.tool_calls.empty()) return R"("tool_use")";
    return c.stop_string.empty() ? R"("end_turn")" : R"("stop_sequence")";
  }
  static std::string sequence_of(const Completion& c) {
    return c.stop_string.empty() || !c.tool_calls.empty() ? "null" : json_string(c.stop_string);
  }

  void put(std::string& out, const OutputPiece& piece) {
    switch (piece.kind) {
      case PieceKind::kReasoning:
        open(out, PieceKind::kReasoning,
             [] { return std::string(R"({"type":"thinking","thinking":"","signature":""})"); });
        if (call_.include_reasoning)
          delta(out, R"({"type":"thinking_delta","thinking":)" + json_string(piece.text) + "}");
        break;
      case PieceKind::kText:
        open(out, PieceKind::kText, [] { return std::string(R"({"type":"text","text":""})"); });
        delta(out, R"({"type":"text_delta","text":)" + json_string(piece.text) + "}");
        break;
      case PieceKind::kCallBegin:
        close(out);
        open(out, PieceKind::kCallArguments, [&] {
          return fmt::format(R"({{"type":"tool_use","id":"{}","name":{},"input":{{}}}})", piece.id,
                             json_string(piece.text));
        });
        break;
      case PieceKind::kCallArguments:
        delta(out, R"({"type":"input_json_delta","partial_json":)" + json_string(piece.text) + "}");
        break;
      case PieceKind::kCallEnd: close(out); break;
    }
  }
  void delta(std::string& out, const std::string& what) {
    out += event("content_block_delta", fmt::format(R"("index":{},"delta":{})", index_, what));
  }
  template <class Block>
  void open(std::string& out, PieceKind kind, const Block& block) {
    if (open_ == kind) return;
    close(out);
    open_ = kind;
    out += event("content_block_start", fmt::format(R"("index":{},"content_block":{})", index_, block()));
  }
  void close(std::string& out) {
    if (!open_) return;
    if (open_ == PieceKind::kReasoning)
      delta(out, fmt::format(R"({{"type":"signature_delta","signature":"{}"}})", kSignature));
    out += event("content_block_stop", fmt::format(R"("index":{})", index_));
    ++index_;
    open_.reset();
  }

  const AnswerHead& head_;
  const GenerationCall& call_;
  std::uint32_t index_ = 0;  // index of the open content block, or of the next block if none is open
  std::optional<PieceKind> open_;
  std::string stop_ = "null", stop_sequence_ = "null";
};

}  // namespace

std::unique_ptr<AnswerWriter> write_messages(const WriterInput& input) {
  return std::make_unique<MessagesWriter>(input);
}

}  // namespace zinc_rt::server
