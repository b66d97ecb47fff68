// Runs one op the way an engine does: a graph of one node, verified, lowered and submitted. Each run is done twice, on
// T-CPU with 3 threads and its fastest kernel set, and by the reference on a ring that takes the workgroups in random
// order on exactly sized memory; the bytes must be the same, so every test here also holds "workgroups may run in any
// order".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/op_rules.h"
#include "ir/verify.h"
#include "kernels/common/act_q8.h"
#include "kernels/common/half.h"
#include "kernels/cpu/quant/quant.h"
#include "lower/alias.h"
#include "lower/lower.h"
#include "ring/cpu/cpu_ring.h"
#include "ring/cpu/cpu_table.h"
#include "ring/cpu/kernel_sets.h"

namespace zinc_rt::kernel_test {

using Bytes = std::vector<std::byte>;
using ir::Dim;
using ir::kOutputs;
using ir::kTokens;
using ir::Op;

template <class T>
Bytes to_bytes(const std::vector<T>& values) {
  const auto* at = reinterpret_cast<const std::byte*>(values.data());
  return Bytes(at, at + values.size() * sizeof(T));
}
template <class T>
std::vector<T> as(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

struct Tensor {
  DType dtype = DType::kF32;
  std::vector<Dim> dims;
  Bytes bytes;
  std::uint64_t pitch = 0;  // bytes between two entries of the outermost dimension; 0: densely packed
  bool absent = false;
  bool is_weight = false;  // a matrix or a stack of them
};
inline Tensor f32(std::vector<Dim> dims, const std::vector<float>& values) {
  return {DType::kF32, std::move(dims), to_bytes(values)};
}
inline Tensor i32(std::vector<Dim> dims, const std::vector<std::int32_t>& values) {
  return {DType::kI32, std::move(dims), to_bytes(values)};
}
inline Tensor u32(std::vector<Dim> dims, const std::vector<std::uint32_t>& values) {
  return {DType::kU32, std::move(dims), to_bytes(values)};
}
inline Tensor absent() {
  Tensor tensor;
  tensor.absent = true;
  return tensor;
}

struct Output {
  DType dtype = DType::kF32;
  std::vector<Dim> dims;
  int updates = -1;  // the input that it is
};
inline Output update(int input) {
  return {DType::kF32, {}, input};
}

struct Attr {
  std::string name;
  std::uint32_t bits;
  Attr(std::string n, float value) : name(std::move(n)), bits(std::bit_cast<std::uint32_t>(value)) {}
  Attr(std::string n, std::uint32_t value) : name(std::move(n)), bits(value) {}
  Attr(std::string n, int value) : name(std::move(n)), bits(static_cast<std::uint32_t>(value)) {}
};

struct Case {
  Op op = Op::ADD;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;
  std::vector<Attr> attrs;
  ring::StepDims dims;
};

// Takes workgroups in random order, one after another; every buffer is a heap block of its own size.
class ShuffledRing final : public ring::Ring {
 public:
  explicit ShuffledRing(unsigned seed) : table_(ring::make_cpu_table()), rng_(seed) {}
  Result<ring::Fence> submit(const ring::Submission& s) override {
    for (std::uint32_t i = 0; i < s.count; ++i) dispatch(*s.batch, s.batch->packets[s.first + i], s.dims);
    return ring::Fence{++fences_};
  }
  Status wait(ring::Fence) override { return {}; }
  Result<std::span<std::byte>> map(const ring::Buffer& b) override {
    return std::span(memory_.at(b.id).get(), b.bytes);
  }
  Result<ring::Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override {
    memory_[++next_].reset(new std::byte[bytes]());
    return ring::Buffer{next_, bytes, heap};
  }
  void free_bo(const ring::Buffer& b) override { memory_.erase(b.id); }
  Result<ring::Kernel> load_kernel(std::span<const std::byte> zrt) override {
    const auto file = kernel::read_zrt(zrt).value();
    Loaded loaded{ring::find_cpu_kernel(file).value(), {}, std::vector<std::byte>(file.lds_bytes + 64)};
    for (const auto& symbol : file.symbols) {
      std::uint32_t value;
      std::memcpy(&value, file.code.data() + symbol.code_offset, 4);
      loaded.symbols.push_back(value);
    }
    kernels_.push_back(std::move(loaded));
    return ring::Kernel{static_cast<std::uint32_t>(kernels_.size())};
  }
  const kernel::KernelTable& kernels() const override { return table_; }
  ring::RingStats stats() const override { return {}; }
  std::string describe() const override { return "random order"; }

 private:
  struct Loaded {
    const cpu::CpuKernel* code;
    std::vector<std::uint32_t> symbols;
    std::vector<std::byte> lds;
  };
  void dispatch(const ring::PacketBatch& batch, const ring::Packet& p, const ring::StepDims& dims) {
    std::vector<void*> addresses;
    for (std::uint32_t b = 0; b < p.n_bindings; ++b) {
      const auto& binding = batch.bindings[p.first_binding + b];
      addresses.push_back(binding.bo == 0 ? nullptr : memory_.at(binding.bo).get() + binding.offset);
    }
    std::vector<std::array<std::uint32_t, 3>> groups;
    for (std::uint32_t z = 0; z < p.grid[2].count(dims); ++z)
      for (std::uint32_t y = 0; y < p.grid[1].count(dims); ++y)
        for (std::uint32_t x = 0; x < p.grid[0].count(dims); ++x) groups.push_back({x, y, z});
    std::ranges::shuffle(groups, rng_);
    Loaded& kernel = kernels_[p.kernel.id - 1];
    auto* lds = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(kernel.lds.data()) + 63) / 64 * 64);
    cpu::CpuArgs args{addresses.data(),
                      kernel.symbols.data(),
                      batch.push.data() + p.first_push,
                      dims.n_tokens,
                      dims.n_outputs,
                      {},
                      lds,
                      nullptr,
                      nullptr,
                      0,
                      1 + static_cast<std::uint32_t>(rng_() % 16)};
    const auto run = [&](void (*code)(const cpu::CpuArgs&), const std::array<std::uint32_t, 3>& g) {
      std::ranges::fill(kernel.lds, std::byte{0xff});  // local memory holds nothing of use: NaN
      std::ranges::copy(g, args.wg);
      code(args);
    };
    std::vector<std::byte> shared;
    if (kernel.code->prepare != nullptr) {
      shared.resize(kernel.code->shared_bytes(args) + 64, std::byte{0xff});
      args.shared = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(shared.data()) + 63) / 64 * 64);
      for (std::uint32_t i = kernel.code->n_prepare(args); i-- > 0;) run(kernel.code->prepare, {i, 0, 0});
    }
    for (const auto& g : groups) run(kernel.code->run, g);
  }
  kernel::KernelTable table_;
  std::mt19937 rng_;
  std::map<std::uint32_t, std::unique_ptr<std::byte[]>> memory_;
  std::vector<Loaded> kernels_;
  std::uint32_t next_ = 0;
  std::uint64_t fences_ = 0;
};

inline std::vector<Bytes> run_on(const Case& c, ring::Ring& ring) {
  ir::Graph graph("one", ir::Stage::kBoth);
  ir::Node node;
  node.op = c.op;
  std::vector<std::optional<ring::Buffer>> memory;
  std::vector<std::uint64_t> pitches;
  const lower::StepLimits limits{c.dims.n_tokens, c.dims.n_outputs};
  const auto declare = [&](std::string name, ir::BufferClass cls, DType dtype, const std::vector<Dim>& dims,
                           const Tensor* from) {
    ir::Buffer buffer;
    buffer.name = std::string(name_prefix(cls)) + name;
    buffer.buffer_class = cls;
    buffer.dtype = dtype;
    for (const Dim dim : dims) buffer.dims[buffer.rank++] = dim;
    const std::uint64_t entries = dims[0].is_const() ? dims[0].n : 1;
    const std::uint64_t dense = lower::buffer_bytes(buffer, limits);
    const std::uint64_t bytes = from != nullptr && from->pitch != 0 ? from->pitch * entries : dense;
    pitches.push_back(from != nullptr && from->pitch != 0 ? from->pitch : dense / entries);
    memory.push_back(bytes > 0 ? std::optional(ring.alloc_bo(bytes, Heap::kDeviceLocal).value()) : std::nullopt);
    if (from != nullptr) {
      EXPECT_EQ(from->bytes.size(), bytes) << to_string(c.op) << " " << name;
      if (from->is_weight && dims[0].is_const()) {  // comes in the form that the ring wants
        const std::uint32_t rows = dims[dims.size() - 2].n, k = dims.back().n;
        const std::uint64_t matrix = rows * row_bytes(dtype, k), pitch = dims.size() > 2 ? pitches.back() : matrix;
        for (std::uint64_t at = 0; matrix > 0 && at < bytes; at += pitch)
          EXPECT_TRUE(ring.upload(*memory.back(), at, {dtype, rows, k, std::span(from->bytes).subspan(at, matrix)}));
      } else if (bytes > 0) {
        std::memcpy(ring.map(*memory.back()).value().data(), from->bytes.data(), std::min(bytes, from->bytes.size()));
      }
    }
    return graph.add_buffer(buffer);
  };
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    const bool is_updated = std::ranges::any_of(c.outputs, [&](const Output& o) { return o.updates == int(i); });
    node.inputs[node.n_inputs++] =
        t.absent ? ir::kNoBuffer
                 : declare("i" + std::to_string(i), is_updated ? ir::BufferClass::kState : ir::BufferClass::kRequest,
                           t.dtype, t.dims, &t);
  }
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    node.inplace |= c.outputs[o].updates >= 0;
    node.outputs[node.n_outputs++] = c.outputs[o].updates >= 0
                                         ? node.inputs[static_cast<std::size_t>(c.outputs[o].updates)]
                                         : declare("o" + std::to_string(o), ir::BufferClass::kOutput,
                                                   c.outputs[o].dtype, c.outputs[o].dims, nullptr);
  }
  for (const Attr& attr : c.attrs) ir::set_attr(node, attr.name, attr.bits);
  graph.add_node(node);
  const auto verified = ir::verify(graph);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
  lower::KernelCache cache;
  const auto batch = lower::lower(
      graph, ring,
      [&](ir::BufferId id) -> Result<lower::Location> {
        const auto& bo = memory[static_cast<std::size_t>(id)];
        if (!bo) return lower::Location{};
        return lower::Location{{bo->id, 0, bo->bytes}, pitches[static_cast<std::size_t>(id)]};
      },
      cache);
  std::vector<Bytes> results;
  if (!batch) {
    ADD_FAILURE() << batch.error().message;
    return std::vector<Bytes>(c.outputs.size());
  }
  const auto fence = ring.submit({&*batch, 0, static_cast<std::uint32_t>(batch->packets.size()), c.dims});
  EXPECT_TRUE(fence && ring.wait(*fence)) << (fence ? "" : fence.error().message);
  for (const ir::BufferId id : node.outs()) {
    const auto& bo = memory[static_cast<std::size_t>(id)];
    if (!bo) {
      results.emplace_back();
      continue;
    }
    const auto view = ring.map(*bo).value();
    results.emplace_back(view.begin(), view.end());
  }
  for (const auto& bo : memory)
    if (bo) ring.free_bo(*bo);
  return results;
}

// Outputs with one NaN for all: which NaN an operation on NaN gives is the compiler's choice.
inline std::vector<Bytes> with_one_nan(const Case& c, std::vector<Bytes> outputs) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Output& out = c.outputs[o];
    if ((out.updates >= 0 ? c.inputs[static_cast<std::size_t>(out.updates)].dtype : out.dtype) != DType::kF32) continue;
    auto floats = as<float>(outputs[o]);
    for (float& x : floats) x = std::isnan(x) ? NAN : x;
    outputs[o] = to_bytes(floats);
  }
  return outputs;
}

// The kernel sets that run on this processor; the reference is not among them.
inline const std::vector<const cpu::KernelSet*>& fast_sets() {
  static const std::vector<const cpu::KernelSet*> found = [] {
    std::vector<const cpu::KernelSet*> list;
    for (const char* name : {"avx2", "avx_vnni", "avx512_vnni", "amx_int8", "neon", "neon_dotprod", "neon_i8mm"})
      if (const auto set = ring::find_kernel_set(name)) list.push_back(*set);
    return list;
  }();
  return found;
}

// The contents of the outputs after the op has run.
inline std::vector<Bytes> run(const Case& c) {
  static const cpu::KernelSet& set = **ring::find_kernel_set("auto");
  static ring::CpuRing threaded(3, set, set.reads_panels);
  static unsigned seed = 0;
  ShuffledRing shuffled(++seed);
  auto results = run_on(c, threaded);
  EXPECT_EQ(with_one_nan(c, results), with_one_nan(c, run_on(c, shuffled)))
      << to_string(c.op) << " depends on the order of its workgroups, or its kernel set has other bits";
  return results;
}

// A row alone gives the bits that it has among others: each input and output with a row a token is cut to one.
inline void expect_rows_independent(const Case& c) {
  const auto together = run(c);
  for (std::uint32_t t = 0; t < c.dims.n_tokens; ++t) {
    Case one = c;
    one.dims.n_tokens = 1;
    for (Tensor& tensor : one.inputs) {
      if (tensor.absent || tensor.dims[0] != kTokens) continue;
      const std::size_t row = tensor.bytes.size() / c.dims.n_tokens;
      tensor.bytes = Bytes(tensor.bytes.begin() + t * row, tensor.bytes.begin() + (t + 1) * row);
    }
    const auto alone = run(one);
    for (std::size_t o = 0; o < c.outputs.size(); ++o) {
      const auto& out = c.outputs[o];
      const auto& dims = out.updates >= 0 ? c.inputs[static_cast<std::size_t>(out.updates)].dims : out.dims;
      if (dims[0] != kTokens) continue;
      const std::size_t row = together[o].size() / c.dims.n_tokens;
      EXPECT_EQ(alone[o], Bytes(together[o].begin() + t * row, together[o].begin() + (t + 1) * row))
          << to_string(c.op) << " row " << t << " output " << o;
    }
  }
}

class Random {
 public:
  explicit Random(unsigned seed) : rng(seed) {}
  std::vector<float> normal(std::size_t n, double scale = 1.0) {
    // Of floats, and one for all: it makes two values at a time, and tests with much data spend much of their time here.
    std::normal_distribution<float> of(0, static_cast<float>(scale));
    std::vector<float> values(n);
    for (float& v : values) v = of(rng);
    return values;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(rng() % n); }
  std::mt19937 rng;
};

// A matrix (or stack of them) in a weight format: random codes under scales of about `scale`.
inline Tensor weights(Random& random, DType dtype, std::vector<std::uint32_t> dims, double scale = 0.02) {
  Tensor t;
  t.dtype = dtype;
  t.is_weight = dims.size() > 1;
  std::uint64_t n = 1;
  for (const auto dim : dims) t.dims.push_back(dim), n *= dim;
  if (dtype == DType::kF32) {
    t.bytes = to_bytes(random.normal(n, 3 * scale));
    return t;
  }
  t.bytes.resize(row_bytes(dtype, n));
  for (auto& byte : t.bytes) byte = static_cast<std::byte>(random.rng());
  const auto put = [&](std::byte* at, double value) {
    const std::uint16_t bits = dtype == DType::kBF16 ? f32_to_bf16(float(value)) : f32_to_f16(float(value));
    std::memcpy(at, &bits, 2);
  };
  const auto& row = traits(dtype);
  for (std::byte* p = t.bytes.data(); p < t.bytes.data() + t.bytes.size(); p += row.block_bytes) {
    const double d = scale * std::normal_distribution<>(0, 1)(random.rng);
    switch (dtype) {
      case DType::kMXFP4: p[0] = static_cast<std::byte>(118 + random.below(4)); break;
      case DType::kQ2_K: put(p + 80, d), put(p + 82, d / 2); break;
      case DType::kFixed16: {  // as a loader makes them: no code has the high digit -128, scales are powers of two
        for (int i = 0; i < 256; ++i)
          if (p[i] == std::byte{0x80}) p[i] = std::byte{0x81};
        const std::uint16_t two_to = f32_to_bf16(static_cast<float>(std::ldexp(scale, -14 - int(random.below(3)))));
        const std::uint16_t bits = two_to & 0x7f80u;
        std::memcpy(p + 512, &bits, 2);
        break;
      }
      case DType::kNVFP4:
        for (int i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(random.below(24));  // up to 2^-7 or so
        break;
      case DType::kTQ1_0: put(p + 52, d); break;
      case DType::kTQ2_0: put(p + 64, d); break;
      case DType::kIQ1_M: {
        std::byte bits[2];
        put(bits, d / 8);
        for (int i = 0; i < 4; ++i)
          p[49 + 2 * i] = (p[49 + 2 * i] & std::byte{15}) | (bits[i / 2] >> (4 * (i % 2)) & std::byte{15}) << 4;
        break;
      }
      case DType::kQ3_K: put(p + 108, d / 8); break;
      case DType::kQ6_K: put(p + 208, d / 32); break;
      case DType::kQ4_1:
      case DType::kQ5_1: put(p, d / 8), put(p + 2, -d / 2); break;
      case DType::kQ4_K:
      case DType::kQ5_K: put(p, d / 32), put(p + 2, d / 32); break;
      case DType::kQ8_0: put(p, d / 32); break;
      case DType::kIQ4_XS: put(p, d / 256); break;
      default: put(p, dtype == DType::kF16 || dtype == DType::kBF16 ? d : d / 8);
    }
  }
  return t;
}

// The values that a tensor's bytes stand for.
inline std::vector<double> values(DType dtype, const Bytes& bytes) {
  std::vector<double> out;
  if (dtype == DType::kQ8A32) {
    for (const auto& block : as<ActBlockQ8A32>(bytes))
      for (const auto q : block.qs) out.push_back(double(block.d) * q);
  } else if (dtype == DType::kQ8A256) {
    for (const auto& block : as<ActBlockQ8A256>(bytes))
      for (const auto q : block.qs) out.push_back(double(block.d) * q);
  } else if (dtype == DType::kQ16A256) {
    for (const auto& block : as<ActBlockQ16A256>(bytes))
      for (int i = 0; i < 256; ++i) out.push_back(double(block.d) * (256 * block.high[i] + block.low[i]));
  } else {
    const auto n = bytes.size() / traits(dtype).block_bytes * traits(dtype).block_elems;
    std::vector<float> wide(n);
    cpu::quant_format(dtype)->dequantize_row(bytes.data(), wide.data(), static_cast<std::int64_t>(n));
    out.assign(wide.begin(), wide.end());
  }
  return out;
}
inline std::vector<double> values(const Tensor& t) {
  return values(t.dtype, t.bytes);
}

inline Bytes quantized(const std::vector<float>& x, DType act, std::uint32_t k) {
  const auto rows = static_cast<std::uint32_t>(x.size() / k);
  return run({Op::QUANTIZE, {f32({kTokens, k}, x)}, {{act, {kTokens, k}}}, {}, {rows, 0}})[0];
}

// For bits that may never change: values that need no random numbers, whose functions differ between libraries.
inline std::vector<float> plain_values(std::size_t n, std::uint32_t seed) {
  std::vector<float> values;
  for (std::uint32_t x = seed; values.size() < n; x = x * 1664525 + 1013904223)
    values.push_back(static_cast<float>(static_cast<std::int32_t>(x)) * 0x1p-31f);
  return values;
}
// FNV-1a.
inline std::uint64_t hash_of(const Bytes& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

inline void expect_near(const Bytes& actual, const std::vector<double>& expected, double absolute, double relative,
                        const std::string& what) {
  const auto values = as<float>(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], absolute + relative * std::abs(expected[i])) << what << " at " << i;
}

inline double silu(double x) {
  return x / (1 + std::exp(-x));
}
inline double gelu(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace zinc_rt::kernel_test
