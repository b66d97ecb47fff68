// Graph is the IR of a model: a flat list of nodes over named buffers of static shape. Families build it, passes in
// lower/ rewrite it, and lower() turns it into packets. Two extents change from step to step: the number of query
// tokens and of output rows. They are symbols and never change the topology, so one graph per (model, stage) serves all
// steps. The nodes between two BARRIERs may run in any order or at once; ir/verify.h lists what that forbids.
// Thread rule: build on one thread, then immutable.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "ir/op.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ir {

// Dim is one extent of a buffer: a number, or a symbol whose value each step sets.
struct Dim {
  enum class Kind : std::uint8_t {
    kConst,
    kTokens,
    kOutputs
  };  // kTokens: number of query tokens of the step; kOutputs: number of rows with logits
  Kind kind = Kind::kConst;
  std::uint32_t n = 0;  // the extent if the kind is kConst, else 0
  constexpr Dim() = default;
  constexpr Dim(std::uint32_t count) : n(count) {}
  constexpr Dim(Kind symbol) : kind(symbol) {}
  constexpr bool is_const() const { return kind == Kind::kConst; }
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};
inline constexpr Dim kTokens{Dim::Kind::kTokens};
inline constexpr Dim kOutputs{Dim::Kind::kOutputs};

inline constexpr std::size_t kMaxRank = 4;
inline constexpr std::size_t kMaxBindings = 16;  // most inputs and outputs of a node together
inline constexpr std::size_t kMaxAttrs = 8;

enum class BufferClass : std::uint8_t {
  kWeight,      // model.*: a tensor of the model file, read only
  kConstant,    // const.*: computed once on the host (RoPE tables), read only
  kState,       // state.*: keeps its content across steps (KV pages, recurrent state)
  kActivation,  // act.*: needed only within a step; lowering may let two activations share memory
  kRequest,     // request.*: the step descriptor, written by the host before each step, read only
  kOutput,      // host_ring.*, out.*: results that the host reads after the step
};
std::string_view to_string(BufferClass buffer_class);
// Returns the prefix of buffer names of this class, such as "model.". Buffers of kOutput may also begin with "out.".
std::string_view name_prefix(BufferClass buffer_class);

struct Buffer {
  std::string name;    // name in the graph, for example model.attn.q_weight[3]
  std::string tensor;  // kWeight: the tensor's name in the model file; else empty
  BufferClass buffer_class = BufferClass::kActivation;
  DType dtype = DType::kF32;
  std::uint8_t rank = 0;
  std::array<Dim, kMaxRank> dims{};  // outermost extent first; the elements along the last are contiguous
  // A kWeight buffer may stand for a part of its tensor: rows [first_row, first_row + dims[rank - 2]) of the tensor's
  // tensor_rows rows, in each matrix of a stack. If tensor_rows is 0, the buffer is the whole tensor.
  std::uint32_t first_row = 0, tensor_rows = 0;
  std::span<const Dim> shape() const { return {dims.data(), rank}; }
};

using BufferId = std::int32_t;
inline constexpr BufferId kNoBuffer = -1;  // the id of an optional operand that is absent

enum class Stage : std::uint8_t { kPrefill = 1, kDecode = 2, kBoth = 3 };
std::string_view to_string(Stage stage);

struct Node {
  Op op = Op::BARRIER;
  Stage stage = Stage::kBoth;
  bool inplace = false;     // one of the outputs is also an input, which the node updates in place
  std::int32_t layer = -1;  // -1 if the node belongs to no layer, such as EMBED
  std::uint8_t n_inputs = 0, n_outputs = 0;
  std::array<BufferId, kMaxBindings> inputs{}, outputs{};  // in the order of the op's rule
  std::array<std::uint32_t, kMaxAttrs> attrs{};  // in the order of the op's rule; a float is stored as its bits
  std::span<const BufferId> ins() const { return {inputs.data(), n_inputs}; }
  std::span<const BufferId> outs() const { return {outputs.data(), n_outputs}; }
};

class Graph {
 public:
  Graph() = default;
  Graph(std::string name, Stage stage) : name_(std::move(name)), stage_(stage) {}

  const std::string& name() const { return name_; }
  Stage stage() const { return stage_; }
  std::span<const Buffer> buffers() const { return buffers_; }
  std::span<const Node> nodes() const { return nodes_; }
  const Buffer& buffer(BufferId id) const { return buffers_[static_cast<std::size_t>(id)]; }
  BufferId find(std::string_view name) const;  // returns kNoBuffer if there is no buffer of this name

  // Adds a buffer while a graph is built. If an equal buffer was added before, returns the id of the first one, so a
  // weight may be declared twice. A different buffer of the same name is appended, and verify() refuses the graph
  // because of the name.
  BufferId add_buffer(Buffer buffer);
  void add_node(const Node& node) { nodes_.push_back(node); }
  std::vector<Node>& mutable_nodes() { return nodes_; }
  std::vector<Buffer>& mutable_buffers() { return buffers_; }  // for passes; they must not change the names

 private:
  std::string name_;
  Stage stage_ = Stage::kBoth;
  std::vector<Buffer> buffers_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, BufferId> index_;
};

}  // namespace zinc_rt::ir
