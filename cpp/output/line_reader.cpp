// Reads a call that has no marker: the name of a tool on a line of its own, and the arguments as JSON on the lines after
// it, as GLM-4-0414 writes calls. Only the request's tools count, because any text may begin with a line.
#include "output/call_reader.h"
#include "output/tool_types.h"

namespace zinc_rt::output {
namespace {

class LineReader final : public CallReader {
 public:
  LineReader(const ReaderOptions& options, CallSink& sink) : CallReader(sink), tools_(*options.tools) {}

 private:
  bool step() override {
    if (!has_begun()) return read_name();
    const auto n = copy_.push(held_);
    sink_.arguments(std::string_view(held_).substr(0, n));
    drop(n);
    if (!copy_.is_done()) return false;
    end();
    done();
    return false;
  }

  bool give_up() {
    failed();
    return false;
  }

  bool read_name() {
    const auto end = held_.find('\n');
    const auto line = std::string_view(held_).substr(0, end);
    const auto name = line.substr(0, line.find_last_not_of(kSpaces) + 1);
    if (name.size() > kMaxNameBytes || line.size() > name.size() + kMaxNameBytes) return give_up();
    if (end == std::string::npos) return tools_.has(name) || tools_.has_beginning(line) ? false : give_up();
    if (!tools_.has(name)) return give_up();
    const auto value = held_.find_first_not_of(kSpaces, end);
    if (value == std::string::npos || value > end + kMaxNameBytes)
      return held_.size() > end + kMaxNameBytes ? give_up() : false;
    if (held_[value] != '{') return give_up();
    std::string called(name);
    drop(value);
    begin(std::move(called));
    return true;
  }

  const ToolTypes& tools_;
  JsonCopy copy_;
};

}  // namespace

std::unique_ptr<CallReader> make_line_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<LineReader>(options, sink);
}

}  // namespace zinc_rt::output
