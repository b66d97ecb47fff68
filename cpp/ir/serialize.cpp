#include "ir/serialize.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "ir/op_rules.h"

namespace zinc_rt::ir {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::uint32_t kMagic = 0x0052495A;  // the bytes "ZIR\0", read as a little-endian number
constexpr std::uint32_t kVersion = 2;

struct Header {
  std::uint32_t magic, version, stage, n_buffers, n_nodes, n_string_bytes, name_offset, name_bytes;
};
struct BufferRecord {
  std::uint32_t name_offset, name_bytes, tensor_offset, tensor_bytes;
  std::uint8_t buffer_class, dtype, rank, dim_kinds;
  std::uint32_t extents[kMaxRank], first_row, tensor_rows;
};
struct NodeRecord {
  std::uint16_t op;
  std::uint8_t stage, inplace;
  std::int32_t layer;
  std::uint8_t n_inputs, n_outputs, zero[2];
  std::int32_t inputs[kMaxBindings], outputs[kMaxBindings];
  std::uint32_t attrs[kMaxAttrs];
};
static_assert(sizeof(Header) == 32 && sizeof(BufferRecord) == 44 && sizeof(NodeRecord) == 172);

template <class T>
void append(std::vector<std::byte>& out, const T& record) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&record);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

template <class... Args>
std::unexpected<Error> corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return fail(StatusCode::kCorrupt, "[ir] {}", fmt::format(format, std::forward<Args>(args)...));
}

Result<Buffer> read_buffer(const BufferRecord& record, std::span<const char> strings, std::size_t index) {
  const auto text = [&](std::uint32_t offset, std::uint32_t size) -> Result<std::string> {
    if (offset > strings.size() || size > strings.size() - offset)
      return corrupt("buffer {}: string at {} of {} bytes, {} there", index, offset, size, strings.size());
    return std::string(strings.data() + offset, size);
  };
  Buffer buffer;
  ZRT_TRY(buffer.name, text(record.name_offset, record.name_bytes));
  ZRT_TRY(buffer.tensor, text(record.tensor_offset, record.tensor_bytes));
  if (record.buffer_class > static_cast<std::uint8_t>(BufferClass::kOutput))
    return corrupt("buffer {}: class {} is unknown", index, record.buffer_class);
  if (record.dtype >= static_cast<std::uint8_t>(DType::kCount))
    return corrupt("buffer {}: type {} is unknown", index, record.dtype);
  if (record.rank > kMaxRank) return corrupt("buffer {}: {} dimensions, {} allowed", index, record.rank, kMaxRank);
  buffer.buffer_class = static_cast<BufferClass>(record.buffer_class);
  buffer.dtype = static_cast<DType>(record.dtype);
  buffer.rank = record.rank;
  buffer.first_row = record.first_row;
  buffer.tensor_rows = record.tensor_rows;
  for (std::size_t i = 0; i < buffer.rank; ++i) {
    const unsigned kind = record.dim_kinds >> (2 * i) & 3u;
    if (kind > static_cast<unsigned>(Dim::Kind::kOutputs))
      return corrupt("buffer {}: extent kind {} is unknown", index, kind);
    buffer.dims[i].kind = static_cast<Dim::Kind>(kind);
    buffer.dims[i].n = buffer.dims[i].is_const() ? record.extents[i] : 0;
  }
  return buffer;
}

Result<Node> read_node(const NodeRecord& record, std::size_t n_buffers, std::size_t index) {
  if (record.op >= kOpCount) return corrupt("node {}: opcode {} is unknown, {} are known", index, record.op, kOpCount);
  if (record.stage < 1 || record.stage > 3) return corrupt("node {}: stage {} is unknown", index, record.stage);
  if (record.n_inputs > kMaxBindings || record.n_outputs > kMaxBindings)
    return corrupt("node {}: {} inputs and {} outputs, {} allowed", index, record.n_inputs, record.n_outputs,
                   kMaxBindings);
  Node node;
  node.op = static_cast<Op>(record.op);
  node.stage = static_cast<Stage>(record.stage);
  node.inplace = record.inplace != 0;
  node.layer = record.layer;
  node.n_inputs = record.n_inputs;
  node.n_outputs = record.n_outputs;
  for (std::size_t i = 0; i < kMaxBindings; ++i) {
    const bool is_input = i < node.n_inputs, is_output = i < node.n_outputs;
    if ((is_input && (record.inputs[i] < kNoBuffer || record.inputs[i] >= static_cast<std::int64_t>(n_buffers))) ||
        (is_output && (record.outputs[i] < 0 || record.outputs[i] >= static_cast<std::int64_t>(n_buffers))))
      return corrupt("node {}: operand {} is no buffer, {} are declared", index, i, n_buffers);
    if (is_input) node.inputs[i] = record.inputs[i];
    if (is_output) node.outputs[i] = record.outputs[i];
  }
  std::memcpy(node.attrs.data(), record.attrs, sizeof(record.attrs));
  const std::size_t n_attrs = rule(node.op).attrs.size();
  for (std::size_t i = n_attrs; i < kMaxAttrs; ++i)
    if (record.attrs[i] != 0)
      return corrupt("node {}: attribute {} is set, {} has {}", index, i, to_string(node.op), n_attrs);
  return node;
}

}  // namespace

std::vector<std::byte> serialize(const Graph& graph) {
  std::string strings;
  const auto intern = [&](std::string_view text) {
    strings += text;
    return static_cast<std::uint32_t>(strings.size() - text.size());
  };
  std::vector<std::byte> out;
  Header header{kMagic,
                kVersion,
                static_cast<std::uint32_t>(graph.stage()),
                static_cast<std::uint32_t>(graph.buffers().size()),
                static_cast<std::uint32_t>(graph.nodes().size()),
                0,
                intern(graph.name()),
                static_cast<std::uint32_t>(graph.name().size())};
  append(out, header);
  for (const Buffer& buffer : graph.buffers()) {
    BufferRecord record{intern(buffer.name),
                        static_cast<std::uint32_t>(buffer.name.size()),
                        intern(buffer.tensor),
                        static_cast<std::uint32_t>(buffer.tensor.size()),
                        static_cast<std::uint8_t>(buffer.buffer_class),
                        static_cast<std::uint8_t>(buffer.dtype),
                        buffer.rank,
                        0,
                        {},
                        buffer.first_row,
                        buffer.tensor_rows};
    for (std::size_t i = 0; i < buffer.rank; ++i) {
      record.dim_kinds =
          static_cast<std::uint8_t>(record.dim_kinds | static_cast<unsigned>(buffer.dims[i].kind) << (2 * i));
      record.extents[i] = buffer.dims[i].n;
    }
    append(out, record);
  }
  for (const Node& node : graph.nodes()) {
    NodeRecord record{};
    record.op = static_cast<std::uint16_t>(node.op);
    record.stage = static_cast<std::uint8_t>(node.stage);
    record.inplace = node.inplace;
    record.layer = node.layer;
    record.n_inputs = node.n_inputs;
    record.n_outputs = node.n_outputs;
    std::memcpy(record.inputs, node.inputs.data(), sizeof(record.inputs));
    std::memcpy(record.outputs, node.outputs.data(), sizeof(record.outputs));
    std::memcpy(record.attrs, node.attrs.data(), sizeof(record.attrs));
    append(out, record);
  }
  header.n_string_bytes = static_cast<std::uint32_t>(strings.size());
  std::memcpy(out.data(), &header, sizeof(header));
  const auto* text = reinterpret_cast<const std::byte*>(strings.data());
  out.insert(out.end(), text, text + strings.size());
  return out;
}

Result<Graph> deserialize(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return corrupt("needs {} bytes, {} there", sizeof(header), bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return corrupt("magic 0x{:08x}, 0x{:08x} wanted", header.magic, kMagic);
  if (header.version != kVersion) return corrupt("version {}, {} wanted", header.version, kVersion);
  if (header.stage < 1 || header.stage > 3) return corrupt("stage {} is unknown", header.stage);
  const std::uint64_t wanted = sizeof(Header) + std::uint64_t{header.n_buffers} * sizeof(BufferRecord) +
                               std::uint64_t{header.n_nodes} * sizeof(NodeRecord) + header.n_string_bytes;
  if (wanted != bytes.size()) return corrupt("needs {} bytes, {} there", wanted, bytes.size());
  const std::span strings(reinterpret_cast<const char*>(bytes.data()) + (bytes.size() - header.n_string_bytes),
                          header.n_string_bytes);
  if (header.name_offset > strings.size() || header.name_bytes > strings.size() - header.name_offset)
    return corrupt("the name lies at {} of {} bytes, {} there", header.name_offset, header.name_bytes, strings.size());
  Graph graph(std::string(strings.data() + header.name_offset, header.name_bytes), static_cast<Stage>(header.stage));
  const std::byte* at = bytes.data() + sizeof(Header);
  for (std::size_t i = 0; i < header.n_buffers; ++i, at += sizeof(BufferRecord)) {
    BufferRecord record;
    std::memcpy(&record, at, sizeof(record));
    ZRT_TRY(auto buffer, read_buffer(record, strings, i));
    if (graph.find(buffer.name) != kNoBuffer) return corrupt("two buffers are named {}", buffer.name);
    graph.add_buffer(std::move(buffer));
  }
  for (std::size_t i = 0; i < header.n_nodes; ++i, at += sizeof(NodeRecord)) {
    NodeRecord record;
    std::memcpy(&record, at, sizeof(record));
    ZRT_TRY(const auto node, read_node(record, header.n_buffers, i));
    graph.add_node(node);
  }
  return graph;
}

}  // namespace zinc_rt::ir
