// LINEAR alone, on one thread: bench_linear [seconds a case [part of a set's name]]. For each kernel set that runs
// here, weight format and number of rows of x: G operations a second (a multiply and an add each), and their part of
// the peak of the set's int8 multiply-adds (what `zinc-rt bench --roofline` measures). A set with tiles is also given
// by the peak of the vectors. Forms for arithmetic `fast` are shown where they have products of their own, with rows of
// x that were rounded before. The weights are packed, of a shape of Qwen3-0.6B's projections; their values mean
// nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/cpu/ops.h"
#include "ring/cpu/kernel_sets.h"

namespace {

using namespace zinc_rt;

constexpr std::uint32_t kK = 1024, kRows = 1024, kWorkgroup = 64;
constexpr DType kFormats[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K,
                              DType::kQ5_K, DType::kQ6_K, DType::kF16,  DType::kBF16};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of samples of at least a fifth of `seconds` each, the median rate of `work`, which says how much it did.
template <class Work>
double rate(double seconds, Work&& work) {
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    double done = 0, passed = 0;
    while ((passed = seconds_since(begin)) < seconds / 5) done += work();
    rates.push_back(done / passed / 1e9);
  }
  std::ranges::sort(rates);
  return rates[2];
}

bool rounds_x(const cpu::KernelSet& set, DType dtype, std::uint32_t n) {
  return set.rows->rounds_x != nullptr && set.rows->rounds_x(dtype, act_dtype(dtype), n);
}

// As the engine has it: at the beginning of a line.
struct Memory {
  explicit Memory(std::uint64_t bytes) : memory(bytes + 64, std::byte{0x11}) {}
  std::byte* at() { return memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64; }
  std::vector<std::byte> memory;
};

double linear_rate(const cpu::KernelSet& set, DType dtype, std::uint32_t n, double seconds) {
  DType act = act_dtype(dtype);
  // Bytes of which scales are ordinary numbers.
  Memory w(row_bytes(dtype, kK) * kRows), x(row_bytes(act, kK) * n), y(sizeof(float) * n * kRows);
  std::vector<float> row(kK);
  for (std::uint32_t i = 0; i < kK; ++i) row[i] = static_cast<float>(i % 37) - 18;
  for (std::uint32_t t = 0; t < n; ++t)
    if (act == DType::kF32)
      std::memcpy(x.at() + t * row_bytes(act, kK), row.data(), row_bytes(act, kK));
    else
      cpu::quantize_row(row.data(), x.at() + t * row_bytes(act, kK), kK, act);
  std::uint64_t pitch = row_bytes(act, kK);
  if (rounds_x(set, dtype, n)) {
    Memory rounded(cpu::bf16_row_bytes(kK) * n);
    for (std::uint32_t t = 0; t < n; ++t)
      set.rows->round_x(x.at() + t * pitch, act, rounded.at() + t * cpu::bf16_row_bytes(kK), kK);
    x = std::move(rounded);
    act = DType::kBF16;
    pitch = cpu::bf16_row_bytes(kK);
  }
  const cpu::LinearArgs args{
      w.at(), dtype,      true, kRows, nullptr, x.at(), act, pitch, kK, n, reinterpret_cast<float*>(y.at()),
      kRows,  row.data(), &set};
  return rate(seconds, [&] {
    for (std::uint32_t m = 0; m < kRows; m += kWorkgroup) cpu::linear_rows(args, m, m + kWorkgroup);
    return 2.0 * n * kK * kRows;
  });
}

void show(const cpu::KernelSet& set, double peak, double seconds) {
  for (const DType dtype : kFormats)
    for (const std::uint32_t n : {1u, 8u, 16u, 32u, 64u, 256u, 512u}) {
      if (set.rows->rounds_x != nullptr && !rounds_x(set, dtype, n)) continue;
      const double gop = linear_rate(set, dtype, n, seconds);
      fmt::print("| {} | {} | {} | {:.0f} | {:.0f}% of {:.0f} |\n", set.name, to_string(dtype), n, gop,
                 100 * gop / peak, peak);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  const std::string_view wanted = argc > 2 ? argv[2] : "";
  fmt::print("| kernels | format | rows of x | Gop/s | of the int8 peak |\n|---|---|---|---|---|\n");
  for (const char* name : {"avx2", "avx_vnni", "avx512_vnni", "amx_int8"}) {
    const auto set = ring::find_kernel_set(name);
    if (!set) continue;
    const auto products = ring::int8_products_of(**set);
    const double peak = rate(seconds, [&] { return 2.0 * static_cast<double>(products(1 << 13)); });
    for (const auto* form : {*set, ring::fast_form_of(**set)})
      if (form != nullptr && std::string_view(form->name).contains(wanted)) show(*form, peak, seconds);
  }
  return 0;
}
