#include "output/call_reader.h"

#include <algorithm>
#include <utility>

namespace zinc_rt::output {

std::size_t overlap(std::string_view text, std::string_view marker) {
  if (marker.empty()) return 0;
  for (std::size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n)
    if (marker.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

void CallReader::push(std::string_view text) {
  held_ += text;
  while (state_ == State::kOpen && step()) {
  }
}

void CallReader::finish() {
  if (state_ != State::kOpen) return;
  if (is_open_) {
    flush();
    held_.clear();
    return done();
  }
  if (held_.find_first_not_of(kSpaces) == std::string::npos && n_begun_ > 0) return done();
  failed();
}

void CallReader::begin(std::string name) {
  is_open_ = true;
  ++n_begun_;
  sink_.begin(std::move(name));
}

void CallReader::end() {
  is_open_ = false;
  taken_.clear();
  sink_.end();
}

void CallReader::failed() {
  if (is_open_)
    end();
  else
    held_.insert(0, std::exchange(taken_, {}));
  state_ = State::kFailed;
}

void CallReader::skip_spaces() {
  const auto n = held_.find_first_not_of(kSpaces);
  drop(n == std::string::npos ? held_.size() : n);
}

bool CallReader::take(std::string_view text) {
  if (!held_.starts_with(text)) return false;
  drop(text.size());
  return true;
}

std::size_t JsonCopy::push(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        if (depth_ == 0) return is_done_ = true, i + 1;
      }
      continue;
    }
    if (c == '"') {
      in_string_ = has_begun_ = true;
    } else if (c == '{' || c == '[') {
      has_begun_ = true;
      ++depth_;
    } else if (c == '}' || c == ']') {
      // The character after a number or a word belongs to the enclosing value.
      if (depth_ == 0) return is_done_ = true, i;
      if (--depth_ == 0) return is_done_ = true, i + 1;
    } else if (depth_ == 0) {
      const bool is_space = kSpaces.contains(c);
      if ((c == ',' || is_space) && has_begun_) return is_done_ = true, i;
      has_begun_ |= !is_space;
    }
  }
  return text.size();
}

std::unique_ptr<CallReader> make_reader(const ReaderOptions& options, CallSink& sink) {
  switch (options.opening->syntax) {
    case Syntax::kJson: return make_json_reader(options, sink);
    case Syntax::kTags:
    case Syntax::kPairs:
    case Syntax::kInvoke: return make_tag_reader(options, sink);
    case Syntax::kBare: return make_bare_reader(options, sink);
    case Syntax::kNamed: return make_named_reader(options, sink);
    case Syntax::kPython: return make_python_reader(options, sink);
    case Syntax::kLine: return make_line_reader(options, sink);
    case Syntax::kHeader: break;  // a ChannelReader reads these
  }
  return nullptr;
}

}  // namespace zinc_rt::output
