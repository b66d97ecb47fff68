// Writes the answers of /v1/responses: a list of items (reasoning, messages, calls), whole or event by event.
#include <fmt/format.h>

#include "base/base64.h"
#include "base/json_text.h"
#include "server/answers/answer_writer.h"

namespace zinc_rt::server {
namespace {

class ResponsesWriter final : public AnswerWriter {
 public:
  explicit ResponsesWriter(const WriterInput& input) : head_(input.head), call_(input.call) {}

  std::string begin(const Usage&) override {
    const auto response = R"("response":)" + object("in_progress", "null", "null", "null");
    auto out = event("response.created", response);
    return out += event("response.in_progress", response);
  }
  std::string part(const AnswerPart& part) override {
    std::string out;
    for (const auto& piece : part.event.pieces) put(out, piece);
    return out;
  }
  std::string end_choice(const AnswerChoice& choice, bool) override {
    is_cut_ = choice.completion.finish_reason == "length";
    std::string out;
    close(out);
    return out;
  }
  std::string end(const AnswerTotals& totals) override {
    return event(is_cut_ ? "response.incomplete" : "response.completed", R"("response":)" + ended(totals));
  }
  std::string failed(const ApiError& error) override {
    const auto shown =
        fmt::format(R"({{"code":{},"message":{}}})", json_string(error.code.empty() ? "server_error" : error.code),
                    json_string(error.message));
    return event("response.failed", R"("response":)" + object("failed", shown, "null", "null"));
  }
  std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) override {
    std::string events;  // not used; only the items are, which are collected at the same time
    for (const auto& piece : choices[0].completion.pieces) put(events, piece);
    end_choice(choices[0], false);
    return ended(totals);
  }

  std::string kept() const override { return kept_; }

 private:
  enum class Item : std::uint8_t { kNone, kReasoning, kMessage, kCall };

  std::string event(const char* name, const std::string& fields) {
    return fmt::format("event: {}\ndata: {{\"type\":\"{}\",\"sequence_number\":{},{}}}\n\n", name, name, n_events_++,
                       fields);
  }
  // Appends an event about the open item.
  void tell(std::string& out, const char* name, const std::string& fields) {
    out += event(name, fmt::format(R"("item_id":"{}","output_index":{},{})", id_, n_items_, fields));
  }

  std::string object(const char* status, const std::string& error, const std::string& incomplete,
                     const std::string& usage) const {
    auto out = fmt::format(
        R"({{"id":"{}","object":"response","created_at":{},"status":"{}","error":{},"incomplete_details":{},"model":{},"output":[{}],"usage":{},"service_tier":"{}",)",
        head_.id, head_.created_s, status, error, incomplete, json_string(head_.model), items_, usage,
        head_.service_tier.empty() ? "default" : head_.service_tier);
    return out += std::string_view(call_.shown_again).substr(1);
  }
  std::string ended(const AnswerTotals& totals) {
    const Usage& u = totals.usage;
    const auto usage = fmt::format(
        R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
        u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.reasoning_tokens, u.total_tokens);
    auto out = is_cut_ ? object("incomplete", "null", R"({"reason":"max_output_tokens"})", usage)
                       : object("completed", "null", "null", usage);
    if (!call_.stored_input.empty()) kept_ = out;
    return out;
  }

  void put(std::string& out, const OutputPiece& piece) {
    switch (piece.kind) {
      case PieceKind::kReasoning:
        open(out, Item::kReasoning, "rs");
        text_ += piece.text;
        tell(out, "response.reasoning_text.delta", R"("content_index":0,"delta":)" + json_string(piece.text));
        break;
      case PieceKind::kText:
        open(out, Item::kMessage, "msg");
        text_ += piece.text;
        tell(out, "response.output_text.delta",
             R"("content_index":0,"logprobs":[],"delta":)" + json_string(piece.text));
        break;
      case PieceKind::kCallBegin:
        close(out);
        name_ = piece.text;
        call_id_ = piece.id;
        open(out, Item::kCall, "fc");
        break;
      case PieceKind::kCallArguments:
        text_ += piece.text;
        tell(out, "response.function_call_arguments.delta", R"("delta":)" + json_string(piece.text));
        break;
      case PieceKind::kCallEnd: close(out); break;
    }
  }

  void open(std::string& out, Item kind, const char* prefix) {
    if (open_ == kind) return;
    close(out);
    open_ = kind;
    text_.clear();
    // The ids of items are made from the answer's id.
    const auto bare = std::string_view(head_.id).substr(head_.id.find('_') + 1);
    id_ = fmt::format("{}_{}{:02x}", prefix, bare, n_items_);
    out += event("response.output_item.added",
                 fmt::format(R"("output_index":{},"item":{})", n_items_, item("in_progress")));
    if (kind != Item::kCall)
      tell(out, "response.content_part.added", fmt::format(R"("content_index":0,"part":{})", content()));
  }

  void close(std::string& out) {
    if (open_ == Item::kNone) return;
    const auto text = json_string(text_);
    if (open_ == Item::kReasoning) tell(out, "response.reasoning_text.done", R"("content_index":0,"text":)" + text);
    if (open_ == Item::kMessage)
      tell(out, "response.output_text.done", R"("content_index":0,"logprobs":[],"text":)" + text);
    if (open_ == Item::kCall)
      tell(out, "response.function_call_arguments.done",
           fmt::format(R"("name":{},"arguments":{})", json_string(name_), text));
    else
      tell(out, "response.content_part.done", fmt::format(R"("content_index":0,"part":{})", content()));
    const auto whole = item(is_cut_ ? "incomplete" : "completed");
    out += event("response.output_item.done", fmt::format(R"("output_index":{},"item":{})", n_items_, whole));
    items_ += (items_.empty() ? "" : ",") + whole;
    ++n_items_;
    open_ = Item::kNone;
  }

  std::string content() const {
    if (open_ == Item::kReasoning) return R"({"type":"reasoning_text","text":)" + json_string(text_) + "}";
    return R"({"type":"output_text","annotations":[],"logprobs":[],"text":)" + json_string(text_) + "}";
  }

  // Returns the open item as JSON. Before the item ends, it has no content.
  std::string item(std::string_view status) const {
    const bool is_begun = status == "in_progress";
    switch (open_) {
      case Item::kReasoning: {
        std::string sealed;
        if (call_.seals_reasoning && !is_begun) sealed = R"(,"encrypted_content":")" + to_base64(text_) + '"';
        return fmt::format(R"({{"id":"{}","type":"reasoning","summary":[],"content":[{}]{}}})", id_,
                           is_begun ? "" : content(), sealed);
      }
      case Item::kMessage:
        return fmt::format(R"({{"id":"{}","type":"message","status":"{}","role":"assistant","content":[{}]}})", id_,
                           status, is_begun ? "" : content());
      case Item::kCall:
        return fmt::format(
            R"({{"id":"{}","type":"function_call","status":"{}","call_id":"{}","name":{},"arguments":{}}})", id_,
            status, call_id_, json_string(name_), json_string(is_begun ? "" : text_));
      case Item::kNone: break;
    }
    return "null";
  }

  const AnswerHead& head_;
  const GenerationCall& call_;
  std::uint64_t n_events_ = 0;
  std::uint32_t n_items_ = 0;  // how many items have ended
  std::string items_;          // the ended items as JSON
  Item open_ = Item::kNone;
  std::string id_, text_, name_, call_id_;  // these four describe the open item
  bool is_cut_ = false;                     // true if max_output_tokens was reached
  std::string kept_;
};

}  // namespace

std::unique_ptr<AnswerWriter> write_responses(const WriterInput& input) {
  return std::make_unique<ResponsesWriter>(input);
}

}  // namespace zinc_rt::server
