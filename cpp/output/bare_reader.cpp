// Reads calls in the form call:N{k:<mark>text<mark>,n:3,o:{..},l:[..]}, which Gemma's models write. Keys have no
// quotes. Texts stand between marks and are not escaped.

#include "base/json_text.h"
#include "base/strict_json.h"
#include "output/call_reader.h"

namespace zinc_rt::output {
namespace {

class BareReader final : public CallReader {
 public:
  BareReader(const ReaderOptions& options, CallSink& sink) : CallReader(sink), options_(options) {}

 private:
  enum class At : std::uint8_t { kStart, kName, kKey, kValue, kText, kNext, kBehind };
  static constexpr std::string_view kCall = "call:";
  static constexpr std::size_t kMaxDepth = 64;

  bool step() override {
    const auto mark = options_.format->mark;
    if (at_ != At::kText && at_ != At::kName) {
      skip_spaces();
      if (held_.empty()) return false;
    }
    switch (at_) {
      case At::kStart:
        if (may_become(kCall)) return false;
        if (!take(kCall)) return give_up();
        at_ = At::kName;
        return true;
      case At::kName: {
        const auto end = held_.find('{');
        if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
        if (end == 0) return give_up();
        begin(held_.substr(0, end));
        drop(end + 1);
        open_ = "{";
        sink_.arguments("{");
        at_ = At::kKey;
        is_first_ = true;
        return true;
      }
      case At::kKey: {
        if (held_[0] == '}') return close();
        if (may_become(mark)) return false;
        const auto end = held_.find(':');
        if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
        auto key = held_.substr(0, end);
        for (auto at = key.find(mark); at != std::string::npos; at = key.find(mark)) key.erase(at, mark.size());
        while (!key.empty() && kSpaces.contains(key.back())) key.pop_back();
        drop(end + 1);
        sink_.arguments((is_first_ ? "" : ", ") + json_string(key) + ": ");
        at_ = At::kValue;
        return true;
      }
      case At::kValue: return read_value();
      case At::kText: {
        const auto end = held_.find(mark);
        const auto n = end == std::string::npos ? held_.size() - overlap(held_, mark) : end;
        put_text(n);
        if (end == std::string::npos) return false;
        drop(mark.size());
        sink_.arguments("\"");
        at_ = At::kNext;
        return true;
      }
      case At::kNext:
        if (take(",")) {
          is_first_ = false;
          at_ = open_.back() == '{' ? At::kKey : At::kValue;
          if (at_ == At::kValue) sink_.arguments(", ");
          return true;
        }
        return close();
      case At::kBehind: {
        const auto end = options_.opening->close;
        if (may_become(end)) return false;
        take(end);
        done();
        return false;
      }
    }
    return false;
  }

  void flush() override {
    if (at_ == At::kText) put_text(held_.size());
  }

  bool give_up() {
    failed();
    return false;
  }

  void put_text(std::size_t n) {
    std::string escaped;
    append_escaped(escaped, std::string_view(held_).substr(0, n));
    if (!escaped.empty()) sink_.arguments(escaped);
    drop(n);
  }

  // Reads the bracket that closes the innermost object or list.
  bool close() {
    const char wanted = open_.back() == '{' ? '}' : ']';
    if (held_[0] != wanted) return give_up();
    drop(1);
    sink_.arguments(std::string_view(&wanted, 1));
    open_.pop_back();
    at_ = At::kNext;
    if (!open_.empty()) return true;
    end();
    at_ = At::kBehind;
    return true;
  }

  bool read_value() {
    const auto mark = options_.format->mark;
    if (may_become(mark)) return false;
    if (take(mark)) {
      sink_.arguments("\"");
      at_ = At::kText;
      return true;
    }
    if (held_[0] == '{' || held_[0] == '[') {
      if (open_.size() >= kMaxDepth) return give_up();
      open_ += held_[0];
      sink_.arguments(std::string_view(held_).substr(0, 1));
      at_ = held_[0] == '{' ? At::kKey : At::kValue;
      drop(1);
      is_first_ = true;
      return true;
    }
    if (held_[0] == ']' && open_.back() == '[') return close();
    const auto end = held_.find_first_of(",}]");
    if (end == std::string::npos) return held_.size() > kMaxNameBytes ? give_up() : false;
    auto word = held_.substr(0, end);
    while (!word.empty() && kSpaces.contains(word.back())) word.pop_back();
    drop(end);
    sink_.arguments(read_any_json(word) ? word : json_string(word));
    at_ = At::kNext;
    return true;
  }

  const ReaderOptions options_;
  At at_ = At::kStart;
  std::string open_;  // brackets that are open, outermost first
  bool is_first_ = true;
};

}  // namespace

std::unique_ptr<CallReader> make_bare_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<BareReader>(options, sink);
}

}  // namespace zinc_rt::output
