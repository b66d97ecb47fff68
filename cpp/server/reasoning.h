// Splits the text of a thinking model into its reasoning, which is between <think> and </think>, and its answer.
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace zinc_rt::server {

class ReasoningSplitter {
 public:
  // begins_inside: the prompt ends within the reasoning.
  explicit ReasoningSplitter(bool begins_inside) : state_(begins_inside ? kInside : kStart) {}

  struct Parts {
    std::string reasoning, answer;
  };
  // The text that is decided with this piece. What may be the beginning of a tag is held back.
  Parts push(std::string_view piece);
  // The text has ended.
  Parts finish();
  bool is_inside() const { return state_ == kInside; }

 private:
  // kStart: only spaces so far. kBehind: spaces after the reasoning, which belong to neither part.
  enum State { kStart, kInside, kBehind, kAnswer } state_;
  std::string held_;
};

// Whether a text ends between the tags, as a prompt does after which the model goes on thinking.
bool leaves_reasoning_open(std::string_view text);

// Splits a whole text.
ReasoningSplitter::Parts split_reasoning(std::string_view text, bool begins_inside);

}  // namespace zinc_rt::server
