// Reads calls in the form {"name": "N", "arguments": {..}}: one object, several objects one after another, or a list of
// objects. Also reads calls whose name stands before the JSON object.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "output/call_reader.h"

namespace zinc_rt::output {
namespace {

class JsonReader final : public CallReader {
 public:
  JsonReader(const ReaderOptions& options, CallSink& sink) : CallReader(sink), options_(options) {}

 private:
  enum class At : std::uint8_t { kStart, kObject, kKey, kColon, kValue, kBehind };

  bool step() override {
    if (at_ == At::kValue) return read_value();
    skip_spaces();
    if (held_.empty()) return false;
    switch (at_) {
      case At::kStart: return read_start();
      case At::kObject:  // the reader is before a key or the object's end
        if (take("}")) return end_object();
        take(",");
        at_ = At::kKey;
        return true;
      case At::kKey: return read_key();
      case At::kColon:
        if (!take(":")) return give_up();
        copy_.restart();
        value_.clear();
        at_ = At::kValue;
        return true;
      case At::kBehind: return read_behind();
      case At::kValue: break;
    }
    return false;
  }

  void flush() override {
    if (at_ == At::kValue && is_passed_on()) sink_.arguments(held_);
  }

  bool give_up() {
    failed();
    return false;
  }

  bool read_start() {
    if (!is_list_ && take("[")) {
      is_list_ = true;
      return true;
    }
    if (!take("{")) return give_up();
    name_.clear();
    arguments_.clear();
    has_name_ = has_arguments_ = has_begun_ = false;
    at_ = At::kObject;
    return true;
  }

  // Returns whether the value of the key "arguments" is passed to the sink while it arrives.
  bool is_passed_on() const { return is_arguments_ && has_begun_ && !is_text_; }

  bool read_key() {
    if (held_[0] != '"') return give_up();
    JsonCopy copy;
    const auto n = copy.push(held_);
    if (n > kMaxNameBytes) return give_up();
    if (!copy.is_done()) return false;
    key_ = decoded(held_.substr(0, n));
    drop(n);
    is_arguments_ = key_ == "arguments" || key_ == "parameters";
    constexpr std::string_view kOfCalls[] = {"name", "tool_name", "type", "function", "id", "tool_call_id"};
    if (!has_name_ && !is_arguments_ && std::ranges::find(kOfCalls, key_) == std::end(kOfCalls))
      return give_up();  // the object is not a call
    at_ = At::kColon;
    return true;
  }

  bool read_value() {
    if (value_.empty()) {
      skip_spaces();
      if (held_.empty()) return false;
      is_text_ = held_[0] == '"';
    }
    const auto n = copy_.push(held_);
    if (is_passed_on()) sink_.arguments(std::string_view(held_).substr(0, n));
    value_ += has_begun_ && !is_text_ ? std::string_view("x") : std::string_view(held_).substr(0, n);
    drop(n);
    if (!copy_.is_done()) return false;
    at_ = At::kObject;
    if (is_arguments_) return end_arguments();
    if (key_ == "name" || key_ == "tool_name" || (key_ == "function" && is_text_)) {
      name_ = decoded(value_);
      has_name_ = true;
      if (!is_text_ || name_.empty()) return give_up();
      if (options_.only_known_names && !options_.tools->has(name_)) return give_up();
      begin_call();
    }
    return true;
  }

  void begin_call() {
    has_begun_ = true;
    begin(name_);
    if (has_arguments_) sink_.arguments(arguments_);
  }

  bool end_arguments() {
    if (has_arguments_) return true;  // if the key occurs twice, the first value counts
    has_arguments_ = true;
    if (has_begun_ && !is_text_) return true;
    // A few models write the object as a JSON text. null means no arguments.
    arguments_ = is_text_ ? decoded(value_) : value_ == "null" ? "{}" : value_;
    if (has_begun_) sink_.arguments(arguments_);
    return true;
  }

  bool end_object() {
    if (!has_name_) return give_up();
    if (!has_arguments_) sink_.arguments("{}");
    end();
    at_ = At::kBehind;
    return true;
  }

  bool read_behind() {
    const auto close = options_.opening->close;
    if (is_list_) {
      if (take("]")) {
        is_list_ = false;
        has_list_ended_ = true;
        return finish_if_unclosed();
      }
      if (take(",")) return at_ = At::kStart, true;
      return end_here();
    }
    if (!close.empty() && take(close)) return done(), false;
    if (!close.empty() && may_become(close)) return false;
    if (has_list_ended_) return end_here();
    if (held_[0] == ';' || held_[0] == ',') return drop(1), true;
    if (held_[0] == '{') return at_ = At::kStart, true;
    return end_here();
  }

  bool finish_if_unclosed() {
    if (!options_.opening->close.empty()) return true;
    done();
    return false;
  }

  // Ends reading, because ordinary text follows the calls.
  bool end_here() {
    done();
    return false;
  }

  // Returns the text of a JSON string, or an empty text for any other value.
  static std::string decoded(const std::string& quoted) {
    const auto value = nlohmann::json::parse(quoted, nullptr, false);
    return value.is_string() ? value.get<std::string>() : std::string();
  }

  const ReaderOptions options_;
  At at_ = At::kStart;
  bool is_list_ = false, has_list_ended_ = false;
  // The following members describe the object that is being read.
  bool has_name_ = false, has_arguments_ = false, has_begun_ = false, is_arguments_ = false, is_text_ = false;
  std::string name_, arguments_, key_, value_;
  JsonCopy copy_;
};

// Reads a name, a mark and a JSON object: Mistral's N[CALL_ID]id[ARGS]{..}, DeepSeek's N<sep>{..}, and DeepSeek's
// function<sep>N followed by a block of code.
class NamedReader final : public CallReader {
 public:
  NamedReader(const ReaderOptions& options, CallSink& sink) : CallReader(sink), options_(options) {}

 private:
  enum class At : std::uint8_t { kName, kSecondName, kValue, kBehind };
  static constexpr std::string_view kCallId = "[CALL_ID]", kBlock = "```json", kBlockEnd = "```";

  bool step() override {
    switch (at_) {
      case At::kName: return read_name();
      case At::kSecondName: return read_second_name();
      case At::kValue: return read_value();
      case At::kBehind: return read_behind();
    }
    return false;
  }
  void flush() override {
    if (at_ == At::kValue) sink_.arguments(held_);
  }
  bool give_up() {
    failed();
    return false;
  }

  bool read_name() {
    const auto n = held_.find(options_.format->mark);
    if (n == std::string::npos) return held_.size() > kMaxNameBytes ? give_up() : false;
    auto name = held_.substr(0, n);
    if (const auto id = name.find(kCallId); id != std::string::npos) name.resize(id);
    name = trimmed(name);
    if (name.empty()) return give_up();
    drop(n + options_.format->mark.size());
    if (name == "function") return at_ = At::kSecondName, true;
    begin(std::move(name));
    at_ = At::kValue;
    return true;
  }
  bool read_second_name() {
    const auto n = held_.find('\n');
    if (n == std::string::npos) return held_.size() > kMaxNameBytes ? give_up() : false;
    auto name = trimmed(held_.substr(0, n));
    if (name.empty()) return give_up();
    drop(n + 1);
    begin(std::move(name));
    at_ = At::kValue;
    return true;
  }
  bool read_value() {
    if (!has_value_) {
      skip_spaces();
      if (held_.empty() || may_become(kBlock)) return false;
      if (take(kBlock)) {
        in_block_ = true;
        return true;
      }
      has_value_ = true;
    }
    const auto n = copy_.push(held_);
    sink_.arguments(std::string_view(held_).substr(0, n));
    drop(n);
    if (!copy_.is_done()) return false;
    end();
    at_ = At::kBehind;
    return true;
  }
  bool read_behind() {
    const auto close = options_.opening->close;
    if (close.empty() && !in_block_) {
      done();
      return false;
    }
    skip_spaces();
    if (held_.empty() || may_become(close) || (in_block_ && may_become(kBlockEnd))) return false;
    if (in_block_ && take(kBlockEnd)) return in_block_ = false, true;
    take(close);
    done();
    return false;
  }
  static std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(kSpaces);
    return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
  }

  const ReaderOptions options_;
  At at_ = At::kName;
  bool has_value_ = false, in_block_ = false;
  JsonCopy copy_;
};

}  // namespace

std::unique_ptr<CallReader> make_json_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<JsonReader>(options, sink);
}
std::unique_ptr<CallReader> make_named_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<NamedReader>(options, sink);
}

}  // namespace zinc_rt::output
