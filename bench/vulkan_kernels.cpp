// Where the time of steps goes on a Vulkan device, by kernel: bench_vulkan_kernels MODEL.gguf [CONTEXT, 4096 [no-matrices]]
// Each kind of step runs twice, and the second one is shown: a decode step behind few and behind many tokens, one of 16
// streams, and a prompt. A barrier and a timestamp stand after each dispatch, so a whole step is slower than untimed;
// the line of the step has both.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/options.h"
#include "vulkan/self_test.h"
#include "vulkan/vulkan_executor.h"

namespace zinc_rt::vulkan {
namespace {

struct Kind {
  const char* name;
  std::uint32_t n_slots, n_tokens, first;  // tokens of each slot, and where they begin
};
constexpr Kind kKinds[] = {{"decode, 1 stream, behind 16 tokens", 1, 1, 16},
                           {"decode, 1 stream, behind 2,047 tokens", 1, 1, 2047},
                           {"decode, 16 streams, behind 64 tokens", 16, 1, 64},
                           {"decode, 16 streams, behind 1,023 tokens", 16, 1, 1023},
                           {"prompt of 512 tokens", 1, 512, 0},
                           {"prompt of 2,048 tokens", 1, 2048, 0}};

// Of the context that kinds of steps need.
Result<std::unique_ptr<Executor>> open(const std::string& model, std::uint32_t max_context, const DeviceInfo& info,
                                       const Faults& faults, const Device& proven) {
  ZRT_TRY(auto device, Device::open(info, faults));
  device->use(proven.fma());
  device->use_matrices(proven.uses_matrices());
  ExecutorOptions options;
  options.max_slots = 16;
  options.max_context = max_context;
  options.chunk_cap = 2048;
  options.kv_pages = 16 * 1024 / 16 + max_context / 16;
  options.kv_type = find_kv_type("i16");
  return VulkanExecutor::open_on(std::move(device), model, options);
}

Result<double> seconds_of(Executor& executor, const Kind& kind) {
  StepInput input;
  std::vector<std::uint32_t> pages, counts(kind.n_slots);
  const std::uint32_t n_pages = (kind.first + kind.n_tokens + 15) / 16;
  std::mt19937 rng(1);
  for (std::uint32_t slot = 0; slot < kind.n_slots; ++slot) {
    for (std::uint32_t i = 0; i < n_pages; ++i) pages.push_back((slot * n_pages + i) % executor.info().n_pages);
    counts[slot] = n_pages;
    for (std::uint32_t i = 0; i < kind.n_tokens; ++i) {
      input.token_ids.push_back(static_cast<std::int32_t>(rng() % executor.config().vocab_size));
      input.positions.push_back(static_cast<std::int32_t>(kind.first + i));
      input.slots.push_back(static_cast<std::int32_t>(slot));
    }
    OutputRow row;
    row.token_index = static_cast<std::uint32_t>(input.token_ids.size() - 1);
    row.position = kind.first + kind.n_tokens;
    input.outputs.push_back(row);
  }
  input.page_tables = {pages, n_pages, counts};
  StepOutput output;
  const auto begin = std::chrono::steady_clock::now();
  ZRT_CHECK_OK(executor.step(input, output));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Status run(const std::string& model, std::uint32_t max_context, bool may_use_matrices) {
  ZRT_TRY(const DeviceInfo info, choose_device(options::get("ZINC_RT_VULKAN_DEVICE")));
  ZRT_TRY(auto tested, Device::open(info));
  ZRT_TRY(const auto differences, prove_arithmetic(*tested));
  if (!may_use_matrices) tested->use_matrices(false);
  fmt::print("{}, {}, fma {}, {} ({})\n", info.name, info.driver, to_string(tested->fma()),
             tested->uses_matrices() ? "int8 matrices" : "no int8 matrices", differences);
  std::vector<double> untimed;
  {
    ZRT_TRY(const auto executor, open(model, max_context, info, {}, *tested));
    for (const Kind& kind : kKinds) {
      if (kind.first + kind.n_tokens > max_context) {
        untimed.push_back(0);
        continue;
      }
      double best = 1e9;
      for (int i = 0; i < (kind.n_tokens > 1 ? 3 : 20); ++i) {
        ZRT_TRY(const double seconds, seconds_of(*executor, kind));
        best = std::min(best, seconds);
      }
      untimed.push_back(best);
      fmt::print("{}: {:.3f} ms, {:.1f} tokens/s\n", kind.name, best * 1e3, kind.n_slots * kind.n_tokens / best);
    }
  }
  ZRT_TRY(const auto executor, open(model, max_context, info, {.timed = true}, *tested));
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    for (int warm = 0; warm < 2 && untimed[i] > 0; ++warm) {
      ZRT_TRY(const double seconds, seconds_of(*executor, kKinds[i]));
      if (warm == 0) continue;
      auto times = static_cast<const VulkanExecutor&>(*executor).device().kernel_times();
      std::ranges::sort(times, std::greater{}, &Device::KernelTime::seconds);
      fmt::print("\n{}: {:.3f} ms untimed, {:.3f} timed\n", kKinds[i].name, untimed[i] * 1e3, seconds * 1e3);
      for (const auto& time : times)
        fmt::print("  {:9.1f} us  {:5} x {:8.2f} us  {}\n", time.seconds * 1e6, time.n, time.seconds / time.n * 1e6,
                   time.kernel);
    }
  }
  return {};
}

}  // namespace
}  // namespace zinc_rt::vulkan

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "bench_vulkan_kernels MODEL.gguf [CONTEXT [no-matrices]]\n");
    return 2;
  }
  if (const auto status =
          zinc_rt::vulkan::run(argv[1], argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 4096, argc < 4);
      !status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}
