// Reads calls in the form <function=N><parameter=K>V</parameter></function>, calls in the form <invoke name="N"> with
// <parameter name="K" string="true">, and GLM's N<arg_key>K</arg_key><arg_value>V</arg_value>. Values have no quotes; the
// tools' schemas say which values are texts.
#include "base/json_text.h"
#include "output/call_reader.h"

namespace zinc_rt::output {
namespace {

// Holds the tags of a syntax. `function` is empty if a call begins with the bare name. `value` stands before a value, if
// the end of the name does not. In some syntaxes one line feed at each end of a value belongs to the markup.
struct Tags {
  std::string function, function_end, parameter, parameter_end, name_end, value = {};
  bool has_line_feeds = false;
};

Tags tags_of(const ReaderOptions& options) {
  if (options.opening->syntax == Syntax::kTags)
    return {"<function=", "</function>", "<parameter=", "</parameter>", ">", {}, true};
  if (options.opening->syntax == Syntax::kPairs)
    return {"", std::string(options.opening->close), "<arg_key>", "</arg_value>", "</arg_key>", "<arg_value>"};
  const std::string mark(options.format->mark);
  return {"<" + mark + "invoke name=\"", "</" + mark + "invoke>", "<" + mark + "parameter name=\"",
          "</" + mark + "parameter>", "\""};
}

class TagReader final : public CallReader {
 public:
  TagReader(const ReaderOptions& options, CallSink& sink)
      : CallReader(sink), options_(options), tags_(tags_of(options)) {}

 private:
  enum class At : std::uint8_t { kFunction, kParameter, kValue };

  bool step() override {
    switch (at_) {
      case At::kFunction: return read_function();
      case At::kParameter: return read_parameter();
      case At::kValue: return read_value();
    }
    return false;
  }

  void flush() override {
    if (at_ == At::kValue && is_text_) put_text(held_);
  }

  bool give_up() {
    failed();
    return false;
  }

  // Reads a name up to the text that ends it. Returns false if the name is incomplete. If it is not a valid name, fails
  // and returns false.
  bool read_name(std::string_view tag, std::string& name) {
    const auto end = held_.find(tags_.name_end, tag.size());
    if (end == std::string::npos || end - tag.size() > kMaxNameBytes)
      return held_.size() > tag.size() + kMaxNameBytes ? give_up() : false;
    name = held_.substr(tag.size(), end - tag.size());
    if (name.empty()) return give_up();
    drop(end + tags_.name_end.size());
    return true;
  }

  bool read_function() {
    skip_spaces();
    if (held_.empty()) return false;
    const auto close = options_.opening->close;
    if (take(close)) return done(), false;
    if (tags_.function.empty() && !has_begun()) return read_bare_function();
    if (!tags_.function.empty() && held_.starts_with(tags_.function)) {
      if (!read_name(tags_.function, function_)) return false;
      if (options_.opening->syntax == Syntax::kInvoke) take(">");
      return begin_function();
    }
    if (may_become(close) || may_become(tags_.function)) return false;
    if (!has_begun()) return give_up();
    done();  // the closing tag is missing
    return false;
  }

  // Reads a name that stands without a tag. It ends at a line feed or at the next tag.
  bool read_bare_function() {
    constexpr std::string_view kNotInNames = " \t\r\n<>{}[]()\"'";
    const auto end = held_.find_first_of(kNotInNames);
    if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
    const auto next = held_.find_first_not_of(kSpaces, end);
    if (next == std::string::npos || next > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
    const auto rest = std::string_view(held_).substr(next);
    const bool is_whole = rest.starts_with(tags_.parameter) || rest.starts_with(tags_.function_end);
    if (!is_whole && (tags_.parameter.starts_with(rest) || tags_.function_end.starts_with(rest))) return false;
    if (end == 0 || !is_whole) return give_up();
    function_ = held_.substr(0, end);
    drop(end);
    return begin_function();
  }

  bool begin_function() {
    begin(function_);
    n_parameters_ = 0;
    sink_.arguments("{");
    at_ = At::kParameter;
    return true;
  }

  bool read_parameter() {
    skip_spaces();
    if (options_.opening->syntax == Syntax::kInvoke && n_parameters_ == 0 && take(">")) return true;
    if (held_.empty() || may_become(tags_.parameter) || may_become(tags_.function_end)) return false;
    if (held_.starts_with(tags_.parameter)) {
      if (!read_name(tags_.parameter, parameter_)) return false;
      at_ = At::kValue;
      has_begun_value_ = has_quoted_ = false;
      is_text_ = options_.tools->is_text(function_, parameter_);
      value_.clear();
      return true;
    }
    const auto close = options_.opening->close;
    if (held_.starts_with(close) || take(tags_.function_end)) {
      sink_.arguments("}");
      end();
      at_ = At::kFunction;
      return true;
    }
    if (may_become(close)) return false;
    return give_up();
  }

  // Returns the end of the value in held_, or npos if it is not found yet. A closing tag counts only before another
  // parameter or the end of the call, so a value may contain such tags. Sets `sure` to the number of bytes of held_
  // that certainly belong to the value.
  std::size_t find_end(std::size_t& sure) const {
    for (auto at = held_.find(tags_.parameter_end); at != std::string::npos;
         at = held_.find(tags_.parameter_end, at + 1)) {
      const auto behind = at + tags_.parameter_end.size();
      const auto next = held_.find_first_not_of(kSpaces, behind);
      const auto rest = next == std::string::npos ? std::string_view() : std::string_view(held_).substr(next);
      if (rest.starts_with(tags_.parameter) || rest.starts_with(tags_.function_end)) return at;
      // The text so far may be the beginning of one of these tags, so more text is needed to decide.
      if (tags_.parameter.starts_with(rest) || tags_.function_end.starts_with(rest)) {
        sure = before_line_feed(at);
        return std::string::npos;
      }
    }
    sure = before_line_feed(held_.size() - overlap(held_, tags_.parameter_end));
    return std::string::npos;
  }
  std::size_t before_line_feed(std::size_t at) const {
    return tags_.has_line_feeds && at > 0 && held_[at - 1] == '\n' ? at - 1 : at;
  }

  bool read_value() {
    if (!has_begun_value_) {
      if (options_.opening->syntax == Syntax::kInvoke) {
        // Reads the attribute string="true"> or string="false">, which says whether the value is a text.
        const auto end = held_.find('>');
        if (end == std::string::npos) return held_.size() > kMaxNameBytes ? give_up() : false;
        const auto attributes = std::string_view(held_).substr(0, end);
        if (attributes.contains("string=\"true\"")) is_text_ = true;
        drop(end + 1);
      } else if (!tags_.value.empty()) {
        skip_spaces();
        if (held_.empty() || may_become(tags_.value)) return false;
        if (!take(tags_.value)) return give_up();
      } else {
        if (held_.empty()) return false;
        take("\n");
      }
      has_begun_value_ = true;
    }
    std::size_t sure = 0;
    const auto end = find_end(sure);
    const auto n = end == std::string::npos ? sure : before_line_feed(end);
    if (is_text_)
      put_text(std::string_view(held_).substr(0, n));
    else
      value_.append(held_, 0, n);
    if (end == std::string::npos) {
      drop(n);
      return false;
    }
    drop(end + tags_.parameter_end.size());
    if (is_text_) {
      put_text("");
      sink_.arguments("\"");
    } else if (const auto json = options_.tools->to_json(function_, parameter_, value_)) {
      put_key();
      sink_.arguments(*json);
    }
    at_ = At::kParameter;
    return true;
  }

  void put_key() {
    std::string out = n_parameters_++ == 0 ? "" : ", ";
    sink_.arguments(out + json_string(parameter_) + ": ");
  }
  void put_text(std::string_view piece) {
    if (!has_quoted_) {
      put_key();
      sink_.arguments("\"");
      has_quoted_ = true;
    }
    if (piece.empty()) return;
    std::string escaped;
    append_escaped(escaped, piece);
    sink_.arguments(escaped);
  }

  const ReaderOptions options_;
  const Tags tags_;
  At at_ = At::kFunction;
  std::string function_, parameter_, value_;
  bool is_text_ = false, has_begun_value_ = false, has_quoted_ = false;
  std::size_t n_parameters_ = 0;
};

}  // namespace

std::unique_ptr<CallReader> make_tag_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<TagReader>(options, sink);
}

}  // namespace zinc_rt::output
