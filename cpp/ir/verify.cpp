#include "ir/verify.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "ir/op_rules.h"

namespace zinc_rt::ir {
namespace {

constexpr std::uint64_t kMaxBufferBytes = 1ull << 48;
// Layer numbers are limited because tables of layers get as many entries as the largest number.
constexpr std::int32_t kMaxLayers = 1 << 16;

std::unexpected<Error> refuse(const std::string& message) {
  return fail(StatusCode::kInvalidArgument, "[ir] {}", message);
}

bool has_valid_prefix(const Buffer& buffer) {
  if (buffer.name.starts_with(name_prefix(buffer.buffer_class))) return true;
  return buffer.buffer_class == BufferClass::kOutput && buffer.name.starts_with("out.");
}

// Returns whether the text form of the IR can contain this text in quotes.
bool is_quotable(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c == '"' || c < ' '; });
}

// Returns whether the text form of the IR can contain this name, because names are written without quotes.
bool is_printable_name(std::string_view name) {
  constexpr std::string_view kPunctuation = "._[]-/:";
  return std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kPunctuation.contains(c);
  });
}

bool is_read_only(BufferClass c) {
  return c == BufferClass::kWeight || c == BufferClass::kConstant || c == BufferClass::kRequest;
}

Status check_buffer(const Buffer& buffer, const TensorLookup& tensors) {
  if (!has_valid_prefix(buffer))
    return refuse(fmt::format("buffer \"{}\" of class {} must be named {}...", buffer.name,
                              to_string(buffer.buffer_class), name_prefix(buffer.buffer_class)));
  if (!is_printable_name(buffer.name)) return refuse("a buffer's name may hold letters, digits and ._[]-/: only");
  if (buffer.rank < 1 || buffer.rank > kMaxRank)
    return refuse(fmt::format("{} has {} dimensions, 1 to 4 allowed", buffer.name, buffer.rank));
  std::uint64_t elements = 1;
  for (const Dim& dim : buffer.shape()) {
    if (dim.is_const() && dim.n == 0) return refuse(fmt::format("{} has an extent of 0", buffer.name));
    // Rows are addressed by a pitch that is fixed when the graph is lowered, so only the first dimension may vary.
    if (!dim.is_const() && &dim != &buffer.dims[0])
      return refuse(fmt::format("{} has a symbol as an inner extent", buffer.name));
    if (elements > kMaxBufferBytes / std::max(dim.n, 1u))
      return refuse(fmt::format("{} has more than 2^48 elements", buffer.name));
    elements *= std::max(dim.n, 1u);
  }
  const Dim row = buffer.dims[buffer.rank - 1u];
  if (const auto block = traits(buffer.dtype).block_elems; block > 1 && (!row.is_const() || row.n % block != 0))
    return refuse(
        fmt::format("{} has rows of {}, {} wants multiples of {}", buffer.name, row.n, to_string(buffer.dtype), block));
  if (const std::uint64_t bytes = row_bytes(buffer.dtype, elements); bytes > kMaxBufferBytes)
    return refuse(fmt::format("{} has {} bytes, {} allowed", buffer.name, bytes, kMaxBufferBytes));
  const bool is_weight = buffer.buffer_class == BufferClass::kWeight;
  if (is_weight == buffer.tensor.empty())
    return refuse(fmt::format("{} of class {} {} a tensor of the model", buffer.name, to_string(buffer.buffer_class),
                              is_weight ? "must name" : "may not name"));
  if (!is_quotable(buffer.tensor))
    return refuse(fmt::format("{}: a tensor's name may hold neither quotes nor control characters", buffer.name));
  const std::uint32_t view_rows = buffer.rank < 2 ? 0 : buffer.dims[buffer.rank - 2u].n;
  if (buffer.tensor_rows == 0 ? buffer.first_row != 0
                              : !is_weight || buffer.rank < 2 || buffer.first_row > buffer.tensor_rows ||
                                    view_rows > buffer.tensor_rows - buffer.first_row)
    return refuse(fmt::format("{} views {} rows from row {} of {}", buffer.name, view_rows, buffer.first_row,
                              buffer.tensor_rows));
  if (!is_weight) return {};
  for (const Dim dim : buffer.shape())
    if (!dim.is_const()) return refuse(fmt::format("weight {} has a symbolic extent", buffer.name));
  if (!tensors) return {};
  const auto spec = tensors(buffer.tensor);
  if (!spec)
    return refuse(fmt::format("{} names tensor \"{}\", which the model does not have", buffer.name, buffer.tensor));
  if (spec->dtype != buffer.dtype)
    return refuse(fmt::format("{} is declared {}, tensor \"{}\" is {}", buffer.name, to_string(buffer.dtype),
                              buffer.tensor, to_string(spec->dtype)));
  // A model file may add leading extents of 1 to a shape. Such extents do not change the shape's meaning, so they are
  // removed before shapes are compared.
  std::vector<std::uint64_t> there = spec->dims, wanted;
  for (const Dim dim : buffer.shape()) wanted.push_back(dim.n);
  if (buffer.tensor_rows > 0) wanted[wanted.size() - 2] = buffer.tensor_rows;
  while (there.size() > wanted.size() && there.front() == 1) there.erase(there.begin());
  while (wanted.size() > there.size() && wanted.front() == 1) wanted.erase(wanted.begin());
  if (there != wanted)
    return refuse(fmt::format("{} is declared [{}], tensor \"{}\" is [{}]", buffer.name, fmt::join(wanted, ", "),
                              buffer.tensor, fmt::join(there, ", ")));
  return {};
}

Status check_inplace(const Graph& graph, const Node& node, std::string_view where) {
  const OpRule& row = rule(node.op);
  bool updates = false;
  for (std::size_t o = 0; o < node.n_outputs; ++o) {
    const int wanted = row.outputs[o].updates;
    int shared = -1;
    for (std::size_t i = 0; i < node.n_inputs; ++i)
      if (node.inputs[i] == node.outputs[o]) shared = static_cast<int>(i);
    const auto& name = graph.buffer(node.outputs[o]).name;
    if (wanted >= 0 && node.inputs[static_cast<std::size_t>(wanted)] != node.outputs[o])
      return refuse(fmt::format("{}: output {} must update input {} in place", where, name,
                                row.inputs[static_cast<std::size_t>(wanted)].name));
    if (wanted == -1 && shared >= 0) return refuse(fmt::format("{}: output {} may not be an input", where, name));
    if (wanted == -2 && shared > 0)
      return refuse(fmt::format("{}: output {} may only share the first input", where, name));
    for (std::size_t other = 0; other < o; ++other)
      if (node.outputs[other] == node.outputs[o])
        return refuse(fmt::format("{}: {} is written twice by one node", where, name));
    updates |= shared >= 0;
  }
  if (updates && !node.inplace) return refuse(fmt::format("{}: updates an input but is not flagged inplace", where));
  if (!updates && node.inplace) return refuse(fmt::format("{}: flagged inplace but updates no input", where));
  return {};
}

}  // namespace

Status verify(const Graph& graph, const TensorLookup& tensors) {
  if (!is_quotable(graph.name())) return refuse("a graph's name may hold neither quotes nor control characters");
  std::unordered_set<std::string_view> names;
  for (const Buffer& buffer : graph.buffers()) {
    ZRT_CHECK_OK(check_buffer(buffer, tensors));
    if (!names.insert(buffer.name).second) return refuse(fmt::format("two buffers are named {}", buffer.name));
  }
  const auto n = graph.buffers().size();
  std::vector<bool> written(n, false);  // whether any node so far wrote the buffer
  // Index: buffer. True if a node since the last barrier has read or written the buffer.
  std::vector<bool> read_now(n, false), written_now(n, false);
  for (std::size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    auto matched = match(graph, node);
    if (!matched) return refuse(fmt::format("node {}: {}", index, matched.error().message));
    const auto where = fmt::format("node {} {}", index, to_string(node.op));
    if ((static_cast<unsigned>(node.stage) & static_cast<unsigned>(graph.stage())) == 0 ||
        static_cast<unsigned>(node.stage) - 1u > 2u)
      return refuse(
          fmt::format("{}: stage {} in a graph of stage {}", where, to_string(node.stage), to_string(graph.stage())));
    if (node.layer < -1 || node.layer >= kMaxLayers)
      return refuse(fmt::format("{}: layer {} is not from -1 to {}", where, node.layer, kMaxLayers - 1));
    ZRT_CHECK_OK(check_inplace(graph, node, where));
    if (node.op == Op::BARRIER) {
      read_now.assign(n, false);
      written_now.assign(n, false);
      continue;
    }
    const auto is_input = [&](BufferId id) { return std::ranges::find(node.ins(), id) != node.ins().end(); };
    for (const BufferId id : node.ins()) {
      if (id == kNoBuffer) continue;
      const auto i = static_cast<std::size_t>(id);
      const Buffer& buffer = graph.buffer(id);
      if (buffer.buffer_class == BufferClass::kActivation && !written[i])
        return refuse(fmt::format("{}: reads {} before it is written", where, buffer.name));
      if (written_now[i])
        return refuse(fmt::format("{}: reads {} after a write without a barrier between", where, buffer.name));
    }
    for (const BufferId id : node.outs()) {
      const auto i = static_cast<std::size_t>(id);
      const Buffer& buffer = graph.buffer(id);
      if (is_read_only(buffer.buffer_class))
        return refuse(
            fmt::format("{}: writes {}, which is read only ({})", where, buffer.name, to_string(buffer.buffer_class)));
      if (written[i] && !is_input(id))
        return refuse(fmt::format("{}: {} has a second writer that is not in place", where, buffer.name));
      if (read_now[i])
        return refuse(fmt::format("{}: writes {} after a read without a barrier between", where, buffer.name));
    }
    for (const BufferId id : node.ins())
      if (id != kNoBuffer) read_now[static_cast<std::size_t>(id)] = true;
    for (const BufferId id : node.outs())
      written[static_cast<std::size_t>(id)] = written_now[static_cast<std::size_t>(id)] = true;
  }
  return {};
}

}  // namespace zinc_rt::ir
