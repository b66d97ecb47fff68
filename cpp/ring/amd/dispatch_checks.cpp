#include "ring/amd/dispatch_checks.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint32_t kRow = 4, kRows = 200, kSums = 8;

// Rows of numbers in memory that the host can read.
struct Rows {
  Buffer buffer;
  std::span<float> values;
};
Result<Rows> alloc_rows(Ring& ring, std::uint32_t n_rows) {
  ZRT_TRY(const auto buffer, ring.alloc_bo(std::uint64_t{n_rows} * kRow * sizeof(float), Heap::kHostVisible));
  ZRT_TRY(const auto bytes, ring.map(buffer));
  return Rows{buffer, {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)}};
}

// The test's work: adds pairs of rows, with one packet per sum.
class Sums {
 public:
  static Result<Sums> make(Ring& ring) {
    Sums sums;
    const auto* entry = ring.kernels().find(ir::Op::ADD, DType::kF32);
    if (entry == nullptr) return fail(StatusCode::kInternal, "[amd] no kernel adds rows");
    auto file = entry->file;
    for (const auto& symbol : entry->file.symbols) ZRT_CHECK_OK(file.patch(symbol.name, kRow));
    ZRT_TRY(sums.kernel_, ring.load_kernel(kernel::write_zrt(file)));
    return sums;
  }
  void add(const Binding& x, const Binding& y, const Binding& to) {
    Packet packet;
    packet.op = ir::Op::ADD;
    packet.kernel = kernel_;
    packet.grid[0] = {ir::kTokens, 1};
    packet.first_binding = static_cast<std::uint32_t>(batch_.bindings.size());
    packet.n_bindings = 3, packet.n_inputs = 2;
    batch_.bindings.insert(batch_.bindings.end(), {x, y, to});
    batch_.packets.push_back(packet);
  }
  Status run(Ring& ring, std::uint32_t n_rows) {
    find_dependencies(batch_);
    ZRT_TRY(const auto fence,
            ring.submit({&batch_, 0, static_cast<std::uint32_t>(batch_.packets.size()), {n_rows, 0}}));
    return ring.wait(fence);
  }

 private:
  Kernel kernel_;
  PacketBatch batch_;
};

Binding all_of(const Rows& rows) {
  return {rows.buffer.id, 0, rows.buffer.bytes};
}
Status expect(std::span<const float> have, const auto& wanted_of) {
  for (std::size_t i = 0; i < have.size(); ++i)
    if (have[i] != wanted_of(i))
      return fail(StatusCode::kInternal, "number {} of {} is {}, {} wanted", i, have.size(), have[i], wanted_of(i));
  return {};
}

struct Operands {
  Rows x, y, z, many;
};
struct Check {
  const char* name;
  Status (*run)(Ring& ring, const Operands& operands);
};
constexpr Check kChecks[] = {
    {"a dispatch of 200 workgroups",
     [](Ring& ring, const Operands& o) -> Status {
       ZRT_TRY(auto sums, Sums::make(ring));
       sums.add(all_of(o.x), all_of(o.y), all_of(o.z));
       ZRT_CHECK_OK(sums.run(ring, kRows));
       return expect(o.z.values, [](std::size_t i) { return static_cast<float>(i) + 1.0f; });
     }},
    {"8 dispatches, each behind a barrier",
     [](Ring& ring, const Operands& o) -> Status {
       ZRT_TRY(auto sums, Sums::make(ring));
       sums.add(all_of(o.x), all_of(o.y), all_of(o.z));
       for (std::uint32_t i = 1; i < kSums; ++i) sums.add(all_of(o.z), all_of(o.y), all_of(o.z));
       ZRT_CHECK_OK(sums.run(ring, kRows));
       return expect(o.z.values, [](std::size_t i) { return static_cast<float>(i + kSums); });
     }},
    {"8 dispatches side by side",
     [](Ring& ring, const Operands& o) -> Status {
       ZRT_TRY(auto sums, Sums::make(ring));
       for (std::uint32_t i = 0; i < kSums; ++i)
         sums.add(all_of(o.x), all_of(o.y), {o.many.buffer.id, i * o.x.buffer.bytes, o.x.buffer.bytes});
       ZRT_CHECK_OK(sums.run(ring, kRows));
       return expect(o.many.values, [](std::size_t i) { return static_cast<float>(i % (kRows * kRow)) + 1.0f; });
     }},
    {"200 steps, one after another",
     [](Ring& ring, const Operands& o) -> Status {
       constexpr int kSteps = 200;
       ZRT_TRY(auto sums, Sums::make(ring));
       std::ranges::fill(o.z.values, 0.0f);
       sums.add(all_of(o.z), all_of(o.y), all_of(o.z));
       for (int i = 0; i < kSteps; ++i) ZRT_CHECK_OK(sums.run(ring, 1));
       return expect(o.z.values.first(kRow), [](std::size_t) { return static_cast<float>(kSteps); });
     }},
};

Result<Operands> alloc_operands(Ring& ring) {
  Operands o;
  ZRT_TRY(o.x, alloc_rows(ring, kRows));
  ZRT_TRY(o.y, alloc_rows(ring, kRows));
  ZRT_TRY(o.z, alloc_rows(ring, kRows));
  ZRT_TRY(o.many, alloc_rows(ring, kRows * kSums));
  for (std::size_t i = 0; i < o.x.values.size(); ++i) o.x.values[i] = static_cast<float>(i), o.y.values[i] = 1.0f;
  return o;
}

}  // namespace

std::vector<DeviceCheck> check_dispatches(Ring& ring) {
  const auto operands = alloc_operands(ring);
  if (!operands) return {{{}, "memory for kernels", operands.error().message, 0}};
  std::vector<DeviceCheck> checks;
  for (const Check& check : kChecks) {
    const auto begin = std::chrono::steady_clock::now();
    const auto status = check.run(ring, *operands);
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    checks.push_back({{}, check.name, status ? std::string() : status.error().message, us.count()});
    if (!status) break;
  }
  return checks;
}

}  // namespace zinc_rt::ring
