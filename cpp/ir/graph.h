// The IR: a flat list of nodes over named buffers of static shape. The two extents that change from step to step (query
// tokens and output rows) are symbols and never change the topology, so one graph per (model, stage) serves all steps.
// The nodes between two BARRIERs may run in any order or at once; ir/verify.h says what that forbids. Thread rule:
// build on one thread, then immutable.
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

// An extent of a buffer: a number, or a symbol whose value each step sets.
struct Dim {
  enum class Kind : std::uint8_t {
    kConst,
    kTokens,
    kOutputs
  };  // kTokens: query tokens of the step; kOutputs: rows with logits
  Kind kind = Kind::kConst;
  std::uint32_t n = 0;  // the number when kConst, else 0
  constexpr Dim() = default;
  constexpr Dim(std::uint32_t count) : n(count) {}
  constexpr Dim(Kind symbol) : kind(symbol) {}
  constexpr bool is_const() const { return kind == Kind::kConst; }
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};
inline constexpr Dim kTokens{Dim::Kind::kTokens};
inline constexpr Dim kOutputs{Dim::Kind::kOutputs};

inline constexpr std::size_t kMaxRank = 4;
inline constexpr std::size_t kMaxBindings = 16;  // inputs + outputs of a node
inline constexpr std::size_t kMaxAttrs = 8;

enum class BufferClass : std::uint8_t {
  kWeight,      // model.*: a tensor of the model file, read only
  kConstant,    // const.*: made once on the host (RoPE tables), read only
  kState,       // state.*: lives across steps (KV pages, recurrent state)
  kActivation,  // act.*: lives within a step; lowering may let two of them share memory
  kRequest,     // request.*: the step descriptor, written by the host before each step, read only
  kOutput,      // host_ring.*, out.*: read by the host after the step
};
std::string_view to_string(BufferClass buffer_class);
std::string_view name_prefix(BufferClass buffer_class);  // "model." ...; kOutput also allows "out."

struct Buffer {
  std::string name;    // logical name, for example model.attn.q_weight[3]
  std::string tensor;  // kWeight: the model file's tensor name; else empty
  BufferClass buffer_class = BufferClass::kActivation;
  DType dtype = DType::kF32;
  std::uint8_t rank = 0;
  std::array<Dim, kMaxRank> dims{};  // outermost first; the last is contiguous
  // kWeight: rows [first_row, first_row + dims[rank - 2]) of a tensor that has tensor_rows rows, in each matrix of a
  // stack. tensor_rows = 0: the whole tensor.
  std::uint32_t first_row = 0, tensor_rows = 0;
  std::span<const Dim> shape() const { return {dims.data(), rank}; }
};

using BufferId = std::int32_t;
inline constexpr BufferId kNoBuffer = -1;  // an absent optional operand

enum class Stage : std::uint8_t { kPrefill = 1, kDecode = 2, kBoth = 3 };
std::string_view to_string(Stage stage);

struct Node {
  Op op = Op::BARRIER;
  Stage stage = Stage::kBoth;
  bool inplace = false;     // some output is also an input, which is updated in place
  std::int32_t layer = -1;  // -1: belongs to no layer
  std::uint8_t n_inputs = 0, n_outputs = 0;
  std::array<BufferId, kMaxBindings> inputs{}, outputs{};  // in the order of the op's rule
  std::array<std::uint32_t, kMaxAttrs> attrs{};            // in the order of the op's rule; floats as their bits
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
  BufferId find(std::string_view name) const;  // kNoBuffer when absent

  // For building a graph. Adding an equal buffer again returns the id of the first one, so a weight may be declared
  // twice. A different buffer of the same name is appended, and verify reports the name.
  BufferId add_buffer(Buffer buffer);
  void add_node(const Node& node) { nodes_.push_back(node); }
  std::vector<Node>& mutable_nodes() { return nodes_; }
  std::vector<Buffer>& mutable_buffers() { return buffers_; }  // do not change their names

 private:
  std::string name_;
  Stage stage_ = Stage::kBoth;
  std::vector<Buffer> buffers_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, BufferId> index_;
};

}  // namespace zinc_rt::ir
