// `zinc-rt mem-test`: tests a tier's memory: heaps, alignment, exhaustion, and many allocations in random order.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "base/error.h"
#include "base/heap.h"
#include "tools/device_checks.h"

namespace zinc_rt::tools {
namespace {

using ring::Buffer;
using ring::Ring;

struct MemTestOptions {
  std::string tier = "t_cpu";
  std::uint64_t seed = 1, rounds = 200, most_mib = 64;
  bool json = false;
};

constexpr Heap kHeaps[] = {Heap::kDeviceLocal, Heap::kBar, Heap::kHostVisible};
constexpr std::uint64_t kAlign = 256;

// Returns bytes that depend on the object (seed) and on the position within it.
std::vector<std::byte> pattern(std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> all(bytes);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (auto& byte : all) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return all;
}

Status expect_bytes(Ring& ring, const Buffer& buffer, std::span<const std::byte> wanted) {
  ZRT_TRY(const auto have, ring.read(buffer, 0, wanted.size()));
  const auto [at, other] = std::ranges::mismatch(have, wanted);
  if (at == have.end()) return {};
  return fail(StatusCode::kInternal, "byte {} of {} of object {} is {:#x}, {:#x} was written", at - have.begin(),
              wanted.size(), buffer.id, static_cast<int>(*at), static_cast<int>(*other));
}

// Tests an object of this size. A new object holds zeros, and later what was written. The host's view of it is aligned
// and has the same bytes.
Status one_object(Ring& ring, Heap heap, std::uint64_t bytes) {
  ZRT_TRY(const auto buffer, ring.alloc_bo(bytes, heap));
  const auto check = [&]() -> Status {
    ZRT_CHECK_OK(expect_bytes(ring, buffer, std::vector<std::byte>(bytes)));
    const auto wanted = pattern(bytes, bytes);
    ZRT_CHECK_OK(ring.write(buffer, 0, wanted));
    ZRT_CHECK_OK(expect_bytes(ring, buffer, wanted));
    const auto window = ring.map(buffer);
    if (!window) return heap == Heap::kDeviceLocal ? Status() : std::unexpected(window.error());
    if (window->size() != bytes || reinterpret_cast<std::uintptr_t>(window->data()) % kAlign != 0)
      return fail(StatusCode::kInternal, "{} bytes at {}, {} wanted at a multiple of {}", window->size(),
                  static_cast<const void*>(window->data()), bytes, kAlign);
    if (!std::ranges::equal(*window, wanted)) return fail(StatusCode::kInternal, "the window shows other bytes");
    return {};
  };
  auto status = check();
  ring.free_bo(buffer);
  return status;
}

// Requests more memory than the device has, which must fail. Then allocates blocks until memory is used up, and frees
// them. After that, all memory must be free again.
Status exhaustion(Ring& ring) {
  constexpr std::uint64_t kBlock = std::uint64_t{256} << 20, kTooMuch = std::uint64_t{1} << 60;
  const auto too_much = ring.alloc_bo(kTooMuch, Heap::kDeviceLocal);
  if (too_much || too_much.error().code != StatusCode::kExhausted)
    return fail(StatusCode::kInternal, "an object of 2^60 bytes: {}", too_much ? "given" : too_much.error().message);
  ZRT_TRY(const auto before, ring.device_memory());
  if (!before) return {};  // the heap is the host's memory, which a test must not fill
  std::vector<Buffer> blocks;
  Status status;
  while (blocks.size() <= before->total / kBlock) {
    const auto block = ring.alloc_bo(kBlock, Heap::kDeviceLocal);
    if (!block) {
      if (block.error().code != StatusCode::kExhausted) status = std::unexpected(block.error());
      break;
    }
    blocks.push_back(*block);
  }
  if (status && blocks.size() > before->total / kBlock)
    status =
        fail(StatusCode::kInternal, "{} blocks of {} bytes were given, of {}", blocks.size(), kBlock, before->total);
  for (const Buffer& block : blocks) ring.free_bo(block);
  ZRT_CHECK_OK(status);
  ZRT_TRY(const auto after, ring.device_memory());
  if (after->free + kBlock < before->free)
    return fail(StatusCode::kInternal, "{} bytes are free after all were given back, {} were before", after->free,
                before->free);
  return {};
}

// Allocates and frees objects of all sizes in random order. The content of each object must stay unchanged.
Status stress(Ring& ring, const MemTestOptions& o) {
  struct Live {
    Buffer buffer;
    std::uint64_t seed;
  };
  std::mt19937_64 draw(o.seed);
  std::vector<Live> live;
  std::uint64_t bytes_live = 0;
  Status status;
  const auto drop = [&](std::size_t i) {
    if (status) status = expect_bytes(ring, live[i].buffer, pattern(live[i].buffer.bytes, live[i].seed));
    bytes_live -= live[i].buffer.bytes;
    ring.free_bo(live[i].buffer);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::uint64_t round = 0; round < o.rounds && status; ++round) {
    const std::uint64_t bytes = 1 + draw() % (std::uint64_t{1} << (draw() % 21));
    while (status && !live.empty() && bytes_live + bytes > o.most_mib << 20) drop(draw() % live.size());
    if (!status) break;
    const auto buffer = ring.alloc_bo(bytes, kHeaps[draw() % std::size(kHeaps)]);
    if (!buffer) {
      status = std::unexpected(buffer.error());
      break;
    }
    live.push_back({*buffer, draw()});
    bytes_live += bytes;
    status = ring.write(*buffer, 0, pattern(bytes, live.back().seed));
    if (draw() % 2 == 0) drop(draw() % live.size());
  }
  while (!live.empty()) drop(live.size() - 1);
  ZRT_CHECK_OK(status);
  if (ring.stats().allocated_bytes != 0)
    return fail(StatusCode::kInternal, "{} bytes are still allocated", ring.stats().allocated_bytes);
  return {};
}

Result<int> mem_test(const MemTestOptions& o) {
  ZRT_TRY(const auto* tier, ring::find_tier(o.tier));
  ZRT_TRY(const auto ring, tier->make_ring({}));
  std::vector<ring::DeviceCheck> checks;
  const auto run = [&](std::string name, const auto& test) {
    const auto begin = std::chrono::steady_clock::now();
    const Status status = test();
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    checks.push_back({tier->name, std::move(name), status ? std::string() : status.error().message, us.count()});
  };
  for (const Heap heap : kHeaps)
    for (const std::uint64_t bytes : {1u, 255u, 256u, 257u, 4096u, 65537u, 3u << 20})
      run(fmt::format("{}, {} bytes", to_string(heap), bytes), [&] { return one_object(*ring, heap, bytes); });
  run("more than there is", [&] { return exhaustion(*ring); });
  run(fmt::format("{} objects that come and go, seed {}", o.rounds, o.seed), [&] { return stress(*ring, o); });
  return show_checks(checks, o.json) ? kDone : kFailed;
}

}  // namespace

void add_mem_test(CLI::App& app, int& exit) {
  auto o = std::make_shared<MemTestOptions>();
  auto& command = *app.add_subcommand("mem-test", "try the memory of a tier: heaps, alignment, exhaustion, stress");
  command.footer(
      "Objects of several sizes in each heap (the device's, its window, the host's) are zeros at first, keep what is\n"
      "written and are aligned; a device's memory is filled once and must be whole again; then objects come and go.\n"
      "Example: zinc-rt mem-test --tier t1 --rounds 100000 --seed 7");
  command.add_option("--tier", o->tier, "a tier that can run here (`zinc-rt tiers`)")->capture_default_str();
  command.add_option("--rounds", o->rounds, "objects of the last test")->capture_default_str();
  command.add_option("--seed", o->seed, "of its sizes and heaps")->capture_default_str();
  command.add_option("--most-mib", o->most_mib, "that these objects take at once")->capture_default_str();
  command.add_flag("--json", o->json, "a JSON array, an object a test");
  command.callback([o, &exit] {
    const auto done = mem_test(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
