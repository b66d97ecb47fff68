#include "ir/text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/read_number.h"
#include "ir/op_rules.h"

namespace zinc_rt::ir {
namespace {

std::string show_buffer(const Graph& graph, BufferId id) {
  if (id == kNoBuffer) return "_";
  if (id < 0 || static_cast<std::size_t>(id) >= graph.buffers().size()) return fmt::format("?{}", id);
  return graph.buffer(id).name;
}

std::string show_attr(const AttrRule& attr, std::uint32_t bits) {
  if (attr.type == AttrType::kU32) return fmt::format("{}", bits);
  const float value = std::bit_cast<float>(bits);
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("0x{:08x}", bits);
}

// Holds the parser's position in one line of the text.
struct Line {
  std::string_view rest;
  std::size_t number;

  void skip_space() {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_space();
    if (!rest.starts_with(token)) return false;
    rest.remove_prefix(token.size());
    return true;
  }
  // Removes and returns the characters up to the first one that is in `stops`.
  std::string_view word(std::string_view stops = " ,()=") {
    skip_space();
    const auto end = std::min(rest.find_first_of(stops), rest.size());
    const auto text = rest.substr(0, end);
    rest.remove_prefix(end);
    return text;
  }
  Result<std::string_view> quoted() {
    if (!take("\"")) return error("a quoted string is wanted");
    const auto end = rest.find('"');
    if (end == std::string_view::npos) return error("the string does not end");
    const auto text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return text;
  }
  Status end() {
    skip_space();
    if (!rest.empty()) return error("the line goes on");
    return {};
  }
  std::unexpected<Error> error(std::string_view what) const {
    return fail(StatusCode::kInvalidArgument, "[ir] line {}: {}, at \"{}\"", number, what, rest.substr(0, 40));
  }
};

template <class T>
Result<T> number(Line& line, std::string_view text) {
  T value{};
  if (!read_number(text, value)) return line.error(fmt::format("\"{}\" is not a number of the wanted type", text));
  return value;
}

Result<Stage> parse_stage(Line& line) {
  const auto text = line.word();
  for (const Stage stage : {Stage::kPrefill, Stage::kDecode, Stage::kBoth})
    if (text == to_string(stage)) return stage;
  return line.error(fmt::format("unknown stage \"{}\"", text));
}

Status parse_buffer(Line& line, Graph& graph) {
  Buffer buffer;
  buffer.name = line.word(" ");
  const auto class_name = line.word();
  bool found = false;
  for (int i = 0; i <= static_cast<int>(BufferClass::kOutput); ++i)
    if (class_name == to_string(static_cast<BufferClass>(i)))
      buffer.buffer_class = static_cast<BufferClass>(i), found = true;
  if (!found) return line.error(fmt::format("unknown buffer class \"{}\"", class_name));
  const auto dtype = parse_dtype(line.word());
  if (!dtype) return line.error("unknown type");
  buffer.dtype = *dtype;
  if (!line.take("[")) return line.error("a shape is wanted");
  while (!line.take("]")) {
    if (buffer.rank == kMaxRank) return line.error("more than 4 dimensions");
    const auto text = line.word(",] ");
    Dim dim;
    if (text == "tokens")
      dim = kTokens;
    else if (text == "outputs")
      dim = kOutputs;
    else {
      ZRT_TRY(dim.n, number<std::uint32_t>(line, text));
    }
    buffer.dims[buffer.rank++] = dim;
    line.take(",");
    if (line.rest.empty()) return line.error("the shape does not end");
  }
  if (line.take("tensor")) {
    ZRT_TRY(buffer.tensor, line.quoted());
    if (line.take("rows")) {
      ZRT_TRY(buffer.first_row, number<std::uint32_t>(line, line.word()));
      if (!line.take("of")) return line.error("\"rows FIRST of COUNT\" is wanted");
      ZRT_TRY(buffer.tensor_rows, number<std::uint32_t>(line, line.word()));
    }
  }
  ZRT_CHECK_OK(line.end());
  if (graph.find(buffer.name) != kNoBuffer) return line.error(fmt::format("buffer {} is declared twice", buffer.name));
  graph.add_buffer(std::move(buffer));
  return {};
}

Result<BufferId> parse_operand(Line& line, const Graph& graph) {
  const auto name = line.word(" ,)=");
  if (name == "_") return kNoBuffer;
  const BufferId id = graph.find(name);
  if (id == kNoBuffer) return line.error(fmt::format("buffer {} is not declared", name));
  return id;
}

Status parse_attrs(Line& line, Node& node) {
  const OpRule& row = rule(node.op);
  while (!line.take("}")) {
    const auto name = line.word(" =");
    if (!line.take("=")) return line.error("an attribute is name=value");
    const auto text = line.word(" ,}");
    std::size_t i = 0;
    while (i < row.attrs.size() && row.attrs[i].name != name) ++i;
    if (i == row.attrs.size()) return line.error(fmt::format("{} has no attribute {}", to_string(node.op), name));
    if (text.starts_with("0x")) {
      const auto [end, code] = std::from_chars(text.data() + 2, text.data() + text.size(), node.attrs[i], 16);
      if (code != std::errc{} || end != text.data() + text.size()) return line.error("a hexadecimal number is wanted");
    } else if (row.attrs[i].type == AttrType::kF32) {
      ZRT_TRY(const float value, number<float>(line, text));
      node.attrs[i] = std::bit_cast<std::uint32_t>(value);
    } else {
      ZRT_TRY(node.attrs[i], number<std::uint32_t>(line, text));
    }
    line.take(",");
    if (line.rest.empty()) return line.error("the attributes do not end");
  }
  return {};
}

Status parse_node(Line& line, Graph& graph) {
  Node node;
  node.stage = graph.stage();
  if (line.rest.find('=') != std::string_view::npos && line.rest.find('=') < line.rest.find('(')) {
    do {
      if (node.n_outputs == kMaxBindings) return line.error("too many outputs");
      ZRT_TRY(node.outputs[node.n_outputs], parse_operand(line, graph));
      ++node.n_outputs;
    } while (line.take(","));
    if (!line.take("=")) return line.error("\"=\" is wanted after the outputs");
  }
  const auto op = parse_op(line.word());
  if (!op) return line.error("unknown opcode");
  node.op = *op;
  if (line.take("(")) {
    while (!line.take(")")) {
      if (node.n_inputs == kMaxBindings) return line.error("too many inputs");
      ZRT_TRY(node.inputs[node.n_inputs], parse_operand(line, graph));
      ++node.n_inputs;
      line.take(",");
      if (line.rest.empty()) return line.error("the inputs do not end");
    }
  }
  if (line.take("{")) ZRT_CHECK_OK(parse_attrs(line, node));
  for (line.skip_space(); !line.rest.empty(); line.skip_space()) {
    const auto word = line.word();
    if (word == "layer") {
      ZRT_TRY(node.layer, number<std::int32_t>(line, line.word()));
    } else if (word == "stage") {
      ZRT_TRY(node.stage, parse_stage(line));
    } else if (word == "inplace") {
      node.inplace = true;
    } else {
      return line.error(fmt::format("unexpected \"{}\"", word));
    }
  }
  graph.add_node(node);
  return {};
}

}  // namespace

std::string show(Dim dim) {
  if (dim.kind == Dim::Kind::kTokens) return "tokens";
  if (dim.kind == Dim::Kind::kOutputs) return "outputs";
  return fmt::format("{}", dim.n);
}

std::string print(const Graph& graph) {
  std::string out = fmt::format("graph \"{}\" stage {}\n", graph.name(), to_string(graph.stage()));
  for (const Buffer& buffer : graph.buffers()) {
    out += fmt::format("buffer {} {} {} [", buffer.name, to_string(buffer.buffer_class), to_string(buffer.dtype));
    for (std::size_t i = 0; i < buffer.rank; ++i) out += (i ? ", " : "") + show(buffer.dims[i]);
    out += buffer.tensor.empty() ? "]" : fmt::format("] tensor \"{}\"", buffer.tensor);
    if (buffer.tensor_rows > 0) out += fmt::format(" rows {} of {}", buffer.first_row, buffer.tensor_rows);
    out += "\n";
  }
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.n_outputs; ++i) out += (i ? ", " : "") + show_buffer(graph, node.outputs[i]);
    if (node.n_outputs > 0) out += " = ";
    out += to_string(node.op);
    if (node.n_inputs > 0) {
      out += "(";
      for (std::size_t i = 0; i < node.n_inputs; ++i) out += (i ? ", " : "") + show_buffer(graph, node.inputs[i]);
      out += ")";
    }
    const auto& attrs = rule(node.op).attrs;
    for (std::size_t i = 0; i < attrs.size(); ++i)
      out += fmt::format("{}{}={}", i ? ", " : " {", attrs[i].name, show_attr(attrs[i], node.attrs[i]));
    if (!attrs.empty()) out += "}";
    if (node.layer >= 0) out += fmt::format(" layer {}", node.layer);
    if (node.stage != graph.stage()) out += fmt::format(" stage {}", to_string(node.stage));
    if (node.inplace) out += " inplace";
    out += "\n";
  }
  return out;
}

Result<Graph> parse(std::string_view text) {
  Graph graph;
  bool has_header = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    Line line{text.substr(0, end), number};
    text.remove_prefix(std::min(end + 1, text.size()));
    line.skip_space();
    if (line.rest.empty() || line.rest.front() == '#') continue;
    if (!has_header) {
      if (!line.take("graph ")) return line.error("the first line is: graph \"name\" stage prefill|decode|both");
      ZRT_TRY(const auto name, line.quoted());
      if (!line.take("stage ")) return line.error("\"stage\" is wanted");
      ZRT_TRY(const Stage stage, parse_stage(line));
      ZRT_CHECK_OK(line.end());
      graph = Graph(std::string(name), stage);
      has_header = true;
    } else if (line.take("buffer ")) {
      ZRT_CHECK_OK(parse_buffer(line, graph));
    } else {
      ZRT_CHECK_OK(parse_node(line, graph));
    }
  }
  if (!has_header) return fail(StatusCode::kInvalidArgument, "[ir] line 1: no graph");
  return graph;
}

}  // namespace zinc_rt::ir
