// Call gives names to what a packet consists of (operands, symbols, constants) while a GPU tier plans it as launches.
// The tier's planner takes calls and makes launches.
// Thread rule: plain values. A call points into its batch.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>

#include "base/dtype.h"
#include "kernel/kernel_table.h"
#include "kernels/common/operands.h"
#include "ring/gpu/symbols.h"
#include "ring/packet.h"

namespace zinc_rt::ring::gpu {

constexpr std::uint32_t ceil_div(std::uint64_t n, std::uint64_t by) {
  return static_cast<std::uint32_t>((n + by - 1) / by);
}

// Converts the value of a symbol dtype_... to the type that it stands for.
constexpr DType type_of(std::uint32_t symbol) {
  return static_cast<DType>(symbol);
}

inline constexpr std::size_t kMostOperands = 16, kMostSymbols = 12;
#define ZRT_FITS_A_CALL(opcode, Name, ...) static_assert(operand::Name::kCount <= kMostOperands, #opcode);
ZRT_OPERANDS(ZRT_FITS_A_CALL)
#undef ZRT_FITS_A_CALL

// R is the type of an operand's memory. On tiers that plan the launches of each step anew, it is an address. On tiers
// that reuse plans, it identifies the memory. R{} is an absent operand.
template <class R>
struct Call {
  using Ref = R;

  ir::Op op = ir::Op::BARRIER;
  std::uint32_t n_buffers = 0, n_symbols = 0;
  Ref buffers[kMostOperands] = {};           // the operands, in the order of operand::<Op>
  std::uint32_t numbers[kMostSymbols] = {};  // values of the symbols, in the order of op_symbol::<Op>
  std::span<const std::byte> push = {};      // the op's constants, a push::<Op>
  // groups[axis] is the number of workgroups of the op's own kernel. groups[0] is also the number of the op's rows.
  std::uint32_t groups[3] = {};
  // The numbers of the step; if the plan is kept for several steps, their maximum.
  StepDims dims = {};

  std::uint32_t rows() const { return groups[0]; }
  // Returns the operands by name. REQUIRES: Names belong to the call's op.
  template <class Names>
  typename Names::template Of<Ref> operands() const {
    assert(Names::kCount == n_buffers);
    return named<typename Names::template Of<Ref>>(buffers);
  }
  // Returns the symbols' values by name. REQUIRES: Names are the first symbols of the op's row in the tier's table.
  template <class Names>
  typename Names::template Of<std::uint32_t> symbols() const {
    assert(Names::kCount <= n_symbols);
    return named<typename Names::template Of<std::uint32_t>>(numbers);
  }
  // Returns the op's constants. REQUIRES: its push constants begin with a T.
  template <class T>
  T constants() const {
    assert(sizeof(T) <= push.size());
    return named<T>(push.data());
  }
  // Returns the extent for the value of a dimension's symbol. If the extent is the step's number of tokens or outputs,
  // it is read from `dims`.
  std::uint32_t count(std::uint32_t symbol) const {
    if (symbol == kernel::kSymbolicTokens) return dims.n_tokens;
    return symbol == kernel::kSymbolicOutputs ? dims.n_outputs : symbol;
  }

 private:
  template <class T>
  static T named(const void* from) {
    T value;
    std::memcpy(static_cast<void*>(&value), from, sizeof(value));
    return value;
  }
};

// Makes the call of a packet. `kernel` is the packet's kernel, with its row in the table (`op`) and the values of its
// symbols. ref_of(binding) returns the operand for a binding that is present.
template <class Ref, class Kernel, class RefOf>
Call<Ref> call_of(const PacketBatch& batch, const Packet& packet, const Kernel& kernel, StepDims dims,
                  const RefOf& ref_of) {
  Call<Ref> call;
  call.op = kernel.op->op;
  call.n_buffers = packet.n_bindings;
  for (std::uint32_t b = 0; b < packet.n_bindings; ++b) {
    const Binding& binding = batch.bindings[packet.first_binding + b];
    if (binding.bo != 0) call.buffers[b] = ref_of(binding);
  }
  call.n_symbols = static_cast<std::uint32_t>(kernel.symbols.size());
  std::ranges::copy(kernel.symbols, call.numbers);
  call.push = std::span(batch.push).subspan(packet.first_push, packet.push_bytes);
  for (int axis = 0; axis < 3; ++axis) call.groups[axis] = packet.grid[axis].count(dims);
  call.dims = dims;
  return call;
}

}  // namespace zinc_rt::ring::gpu
