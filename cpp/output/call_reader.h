// CallReader reads the tool calls after an opening marker, while their text arrives in pieces. Each syntax
// (output/format.h) has a subclass.
// Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "output/format.h"
#include "output/tool_types.h"

namespace zinc_rt::output {

// CallSink receives the parts of each call: begin(), then the JSON of the call's arguments in pieces, then end().
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin(std::string name) = 0;
  virtual void arguments(std::string_view piece) = 0;
  virtual void end() = 0;
};

class CallReader {
 public:
  explicit CallReader(CallSink& sink) : sink_(sink) {}
  virtual ~CallReader() = default;

  // Takes more text. Text that cannot be interpreted yet is held back.
  void push(std::string_view text);
  // Ends the text. Text that was held back inside a call is passed on as part of the call, which stays open.
  void finish();

  // State says how far reading has come. kFailed means that the text is not a call. If no call had begun, nothing was
  // passed to the sink, and rest() returns all the text so far. If a call had begun, and with kDone, rest() returns the
  // text after the last call.
  enum class State : std::uint8_t { kOpen, kDone, kFailed };
  State state() const { return state_; }
  std::string_view rest() const { return held_; }
  bool has_begun() const { return n_begun_ > 0; }

 protected:
  // Interprets more of held_ and removes what it has interpreted. Returns false if nothing can be interpreted yet.
  virtual bool step() = 0;
  // Called when the text ends inside a call. Passes on what held_ contains.
  virtual void flush() {}

  void begin(std::string name);
  void end();
  void done() { state_ = State::kDone; }
  // Called when the text turns out not to be a tool call. If a tool call has begun, it ends here, and the text after it is
  // plain text. Otherwise all text since the end of the last complete tool call becomes plain text.
  void failed();
  void skip_spaces();
  void drop(std::size_t n) { taken_.append(held_, 0, n), held_.erase(0, n); }
  // Removes `text` from held_ if held_ begins with it. Returns whether it did.
  bool take(std::string_view text);
  // Returns whether held_, once more text has arrived, may begin with `text`.
  bool may_become(std::string_view text) const { return held_.size() < text.size() && text.starts_with(held_); }

  CallSink& sink_;
  std::string held_;

 private:
  std::string taken_;  // text that was read since the last call ended, while no call is open
  bool is_open_ = false;
  State state_ = State::kOpen;
  std::size_t n_begun_ = 0;
};

// Finds the end of one JSON value whose text arrives in pieces, so that the value can be passed on unchanged.
class JsonCopy {
 public:
  // Returns how many bytes of `text` belong to the value.
  std::size_t push(std::string_view text);
  bool is_done() const { return is_done_; }
  void restart() { *this = JsonCopy(); }

 private:
  int depth_ = 0;
  bool in_string_ = false, is_escaped_ = false, has_begun_ = false, is_done_ = false;
};

struct ReaderOptions {
  const CallFormat* format = nullptr;
  const Opening* opening = nullptr;
  const ToolTypes* tools = nullptr;
  bool only_known_names = false;  // true: a call of a tool that is not in the request is plain text
};
std::unique_ptr<CallReader> make_json_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_tag_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_bare_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_line_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_python_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_named_reader(const ReaderOptions& options, CallSink& sink);
std::unique_ptr<CallReader> make_reader(const ReaderOptions& options, CallSink& sink);

// A name or key has at most this many bytes, so that only so much text is held back to find a name's end.
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::string_view kSpaces = " \t\r\n";
// Returns the length of the longest proper prefix of `marker` with which `text` ends. That much text must be held back.
std::size_t overlap(std::string_view text, std::string_view marker);

}  // namespace zinc_rt::output
