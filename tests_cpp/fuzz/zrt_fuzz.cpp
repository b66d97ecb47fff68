// Any bytes as a .zrt file: what read_zrt accepts, write_zrt gives back byte for byte; T-CPU loads it or says why not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ring/cpu/cpu_ring.h"
#include "ring/cpu/kernel_sets.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto ring = zinc_rt::ring::CpuRing(1, **zinc_rt::ring::find_kernel_set("ref"), false);
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = zinc_rt::kernel::read_zrt(bytes);
  const auto loaded = ring.load_kernel(bytes);
  if (!file) {
    expect(!loaded && !file.error().message.empty());
    return 0;
  }
  const auto written = zinc_rt::kernel::write_zrt(*file);
  expect(std::ranges::equal(written, bytes));
  expect(zinc_rt::kernel::read_zrt(written) == *file);
  expect(loaded || !loaded.error().message.empty());
  while (!file->unpatched().empty()) expect(file->patch(std::string(file->unpatched()), 7).has_value());
  return 0;
}
