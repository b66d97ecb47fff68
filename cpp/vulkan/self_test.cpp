#include "vulkan/self_test.h"

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "base/error.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/fold.h"
#include "kernels/common/half.h"
#include "kernels/vulkan/push.h"

namespace zinc_rt::vulkan {
namespace {

constexpr std::uint32_t kValues = 4096;

std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
float real(std::uint32_t u) {
  return std::bit_cast<float>(u);
}

// The inputs of a function: two lists of words, which the kernel reads as floats or integers.
struct Values {
  std::vector<std::uint32_t> a, b;
  float fa(std::uint32_t i) const { return real(a[i % kValues]); }
  float fb(std::uint32_t i) const { return real(b[i % kValues]); }
};
using Random = std::mt19937;

float between(Random& random, float low, float high) {
  return low + (high - low) * (static_cast<float>(random() >> 8) * 0x1p-24f);
}
std::uint32_t sign(Random& random) {
  return static_cast<std::uint32_t>(random()) & 0x80000000u;
}

// Function describes a tested function of kernels/vulkan/self_test.comp: how its inputs are drawn, and its expected
// results.
struct Function {
  std::uint32_t number;
  const char* name;
  void (*draw)(Random& random, std::uint32_t& a, std::uint32_t& b);
  std::uint32_t (*wanted)(const Values& v, std::uint32_t i);
};

void usual(Random& random, std::uint32_t& a, std::uint32_t& b) {
  a = sign(random) | bits(between(random, 0.5f, 2.0f));
  b = bits(between(random, -2.0f, 2.0f));
}
// Returns the bits of a random number from 2^-67 to below 2^63; all powers of two are equally likely.
std::uint32_t of_any_size(Random& random) {
  return (static_cast<std::uint32_t>(random()) & 0x7FFFFFu) | (60 + random() % 130) << 23;
}
template <int kLow, int kHigh>
void from_range(Random& random, std::uint32_t& a, std::uint32_t&) {
  a = random() % 2 == 0 ? sign(random) | of_any_size(random) : bits(between(random, kLow, kHigh));
}
void any_word(Random& random, std::uint32_t& a, std::uint32_t& b) {
  a = static_cast<std::uint32_t>(random());
  b = static_cast<std::uint32_t>(random());
}
// Draws two numbers that are near each other, so that sums cancel, or two tiny numbers, including denormals. NaNs are
// not drawn, because no rule defines their bits.
void near_and_tiny(Random& random, std::uint32_t& a, std::uint32_t& b) {
  for (std::uint32_t* x : {&a, &b}) {
    const std::uint32_t exponent = random() % 4 != 0 ? 120 + random() % 14 : random() % 60;
    *x = (static_cast<std::uint32_t>(random()) & 0x807FFFFFu) | exponent << 23;
    if (random() % 8 == 0) *x &= 0xFFFFF000u;
  }
}

const Function kFunctions[] = {
    {push::kTestFma, "fma", near_and_tiny,
     [](const Values& v, std::uint32_t i) { return bits(__builtin_fmaf(v.fa(i), v.fb(i), v.fa(i + 1))); }},
    {push::kTestSumOfProduct, "a product and a sum", usual,
     [](const Values& v, std::uint32_t i) {
       const float product = v.fa(i) * v.fb(i);
       return bits(product + v.fa(i + 1));
     }},
    {push::kTestProduct, "products with denormals",
     [](Random& random, std::uint32_t& a, std::uint32_t& b) {
       a = sign(random) | bits(between(random, 1e-22f, 1e-18f));
       b = bits(between(random, 1e-24f, 1e-20f));
     },
     [](const Values& v, std::uint32_t i) { return bits(v.fa(i) * v.fb(i)); }},
    {push::kTestSum, "sums of denormals",
     [](Random& random, std::uint32_t& a, std::uint32_t& b) {
       a = static_cast<std::uint32_t>(random()) & 0x80FFFFFFu;
       b = static_cast<std::uint32_t>(random()) & 0x807FFFFFu;
     },
     [](const Values& v, std::uint32_t i) { return bits(v.fa(i) + v.fb(i)); }},
    {push::kTestRound, "rounding by a sum", from_range<-4000000, 4000000>,
     [](const Values& v, std::uint32_t i) { return bits(exact::round_int(v.fa(i))); }},
    {push::kTestExp, "exp", from_range<-106, 90>,
     [](const Values& v, std::uint32_t i) { return bits(exact::exp(v.fa(i))); }},
    {push::kTestSilu, "silu", from_range<-125, 125>,
     [](const Values& v, std::uint32_t i) { return bits(exact::silu(v.fa(i))); }},
    {push::kTestGelu, "gelu", from_range<-16, 16>,
     [](const Values& v, std::uint32_t i) { return bits(exact::gelu_tanh(v.fa(i))); }},
    {push::kTestTanh, "tanh", from_range<-12, 12>,
     [](const Values& v, std::uint32_t i) { return bits(exact::tanh(v.fa(i))); }},
    {push::kTestDiv, "division",
     [](Random& random, std::uint32_t& a, std::uint32_t& b) {
       const bool is_near = random() % 2 == 0;
       a = sign(random) | (is_near ? bits(between(random, 1e-3f, 1e3f)) : of_any_size(random));
       b = is_near ? bits(between(random, 1e-3f, 1e3f)) : of_any_size(random);
     },
     [](const Values& v, std::uint32_t i) { return bits(exact::div(v.fa(i), v.fb(i))); }},
    {push::kTestRsqrt, "reciprocal square root",
     [](Random& random, std::uint32_t& a, std::uint32_t&) { a = of_any_size(random); },
     [](const Values& v, std::uint32_t i) { return bits(exact::rsqrt(v.fa(i))); }},
    {push::kTestFromInt, "int to float", any_word,
     [](const Values& v, std::uint32_t i) { return bits(static_cast<float>(static_cast<std::int32_t>(v.a[i]))); }},
    {push::kTestToHalf, "f32 to f16",
     [](Random& random, std::uint32_t& a, std::uint32_t& b) {
       any_word(random, a, b);
       if (random() % 2 == 0) a = sign(random) | bits(between(random, 1e-9f, 1e-3f));
     },
     [](const Values& v, std::uint32_t i) { return std::uint32_t{f32_to_f16(v.fa(i))}; }},
    {push::kTestFromHalf, "f16 to f32", any_word,
     [](const Values& v, std::uint32_t i) { return bits(f16_to_f32(static_cast<std::uint16_t>(v.a[i]))); }},
    {push::kTestDotOfBytes, "dots of bytes", any_word,
     [](const Values& v, std::uint32_t i) {
       std::int32_t sum = 0;
       for (int at = 0; at < 32; at += 8)
         sum += static_cast<std::int8_t>(v.a[i] >> at) * static_cast<std::int8_t>(v.b[i] >> at);
       return static_cast<std::uint32_t>(sum);
     }},
    {push::kTestFold, "sums in 16 lanes", usual,
     [](const Values& v, std::uint32_t i) {
       float lane[16] = {};
       for (std::uint32_t k = 0; k < 256; ++k) lane[k % 16] = __builtin_fmaf(v.fa(i + k), v.fb(i + k), lane[k % 16]);
       return bits(fold16(lane));
     }},
    {push::kTestSigmoid, "sigmoid", from_range<-125, 125>,
     [](const Values& v, std::uint32_t i) { return bits(exact::sigmoid(v.fa(i))); }},
    {push::kTestSoftplus, "softplus", from_range<-106, 106>,
     [](const Values& v, std::uint32_t i) { return bits(exact::softplus(v.fa(i))); }},
};
static_assert(std::size(kFunctions) == push::kTestFunctions);

// Memory holds the buffers of the test: inputs, results, and three numbers of workgroups.
struct Memory {
  Buffer a, b, y, counts;
};
Result<Memory> make_memory(Device& device) {
  Memory memory;
  for (Buffer* buffer : {&memory.a, &memory.b, &memory.y}) {
    ZRT_TRY(*buffer, device.allocate(kValues * sizeof(std::uint32_t), Heap::kHostVisible));
  }
  ZRT_TRY(memory.counts, device.allocate(3 * sizeof(std::uint32_t), Heap::kHostVisible));
  const std::uint32_t counts[3] = {kValues / push::kWidth, 1, 1};
  std::memcpy(memory.counts.host, counts, sizeof(counts));
  return memory;
}

Values draw(const Function& function) {
  Random random(function.number + 1);
  Values values{std::vector<std::uint32_t>(kValues), std::vector<std::uint32_t>(kValues)};
  for (std::uint32_t i = 0; i < kValues; ++i) function.draw(random, values.a[i], values.b[i]);
  return values;
}

// Returns a text about how a function's results differ on the device; empty if they are equal.
Result<std::string> run_function(Device& device, const Memory& memory, const KernelKey& kernel,
                                 const Function& function) {
  const Values values = draw(function);
  std::memcpy(memory.a.host, values.a.data(), values.a.size() * sizeof(std::uint32_t));
  std::memcpy(memory.b.host, values.b.data(), values.b.size() * sizeof(std::uint32_t));
  const push::SelfTest arguments{memory.a.address, memory.b.address, memory.y.address, kValues, function.number};
  ZRT_TRY(const auto commands, device.record([&](Recorder& recorder) {
    recorder.dispatch(device.pipeline(kernel), arguments, memory.counts.handle, 0);
  }));
  ZRT_CHECK_OK(device.run({&commands, 1}));
  std::vector<std::uint32_t> got(kValues);
  std::memcpy(got.data(), memory.y.host, got.size() * sizeof(std::uint32_t));
  std::uint32_t n_wrong = 0, first = 0;
  for (std::uint32_t i = kValues; i-- > 0;)
    if (got[i] != function.wanted(values, i)) ++n_wrong, first = i;
  if (n_wrong == 0) return std::string();
  return fmt::format("{} differs in {} of {} values, first {:08x} where {:08x} is right", function.name, n_wrong,
                     kValues, got[first], function.wanted(values, first));
}

}  // namespace

Result<std::string> find_difference(Device& device, Fma form) {
  ZRT_TRY(const Memory memory, make_memory(device));
  device.use(form);
  const KernelKey kernel{"self_test", {0}};
  ZRT_CHECK_OK(device.make_pipelines({&kernel, 1}));
  for (const Function& function : kFunctions) {
    ZRT_TRY(auto difference, run_function(device, memory, kernel, function));
    if (!difference.empty()) return difference;
  }
  return std::string();
}

// self_test_matrix.comp computes y = (256 + (r - 5) + 3 t) a b for row r of a and column t of b, in two ways.
Result<std::string> find_matrix_difference(Device& device) {
  ZRT_TRY(const Memory memory, make_memory(device));
  const KernelKey kernel{"self_test_matrix", {}};
  ZRT_CHECK_OK(device.make_pipelines({&kernel, 1}));
  Random random(1);
  std::array<std::int8_t, 16 * 32> a, b;
  for (auto* bytes : {&a, &b})
    for (std::int8_t& byte : *bytes) byte = static_cast<std::int8_t>(random());
  std::memcpy(memory.a.host, a.data(), a.size());
  std::memcpy(memory.b.host, b.data(), b.size());
  const push::SelfTest arguments{memory.a.address, memory.b.address, memory.y.address, 0, 0};
  ZRT_TRY(const auto commands, device.record([&](Recorder& recorder) {
    recorder.dispatch(device.pipeline(kernel), arguments, memory.counts.handle, 0);
  }));
  ZRT_CHECK_OK(device.run({&commands, 1}));
  std::uint32_t n_wrong = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    std::int32_t wanted = 0, got;
    for (std::size_t k = 0; k < 32; ++k) wanted += a[i % 16 * 32 + k] * b[i / 16 * 32 + k];
    wanted *= 256 + static_cast<std::int32_t>(i % 16) - 5 + 3 * static_cast<std::int32_t>(i / 16);
    for (const std::size_t at : {i, 256 + i}) {
      std::memcpy(&got, memory.y.host + at * sizeof(got), sizeof(got));
      n_wrong += got != wanted;
    }
  }
  return n_wrong == 0 ? std::string() : fmt::format("{} of 512 elements differ", n_wrong);
}

Result<std::string> prove_arithmetic(Device& device) {
  std::string differences;
  const auto note = [&](std::string_view what, std::string_view difference) {
    differences += fmt::format("{}{}: {}", differences.empty() ? "" : "; ", what, difference);
  };
  for (const Fma form : kFmaForms) {
    if (needs_doubles(form) && !device.info().has_doubles) continue;
    ZRT_TRY(const auto difference, find_difference(device, form));
    if (!difference.empty()) {
      note(to_string(form), difference);
      continue;
    }
    if (device.info().has_matrices) {
      const auto of_matrices = find_matrix_difference(device);
      device.use_matrices(of_matrices && of_matrices->empty());
      if (!device.uses_matrices()) note("matrices", of_matrices ? *of_matrices : of_matrices.error().message);
    }
    return differences;
  }
  return fail(StatusCode::kUnavailable, "[vulkan] {} has no exact arithmetic: {}", device.info().name, differences);
}

}  // namespace zinc_rt::vulkan
