#include "ring/amd/packet_checks.h"

#include <chrono>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

// Bench is the memory that checks use: a page of host memory for packets, a page of host memory for results, and a page
// of device memory.
struct Bench {
  AmdDevice::Memory packets, host, device;
  std::uint64_t word(std::uint64_t at = 0) const {
    std::uint64_t value;
    std::memcpy(&value, host.host + at, sizeof(value));
    return value;
  }
};
constexpr std::uint64_t kPattern = 0x0123456789ABCDEF, kLow = 0x89ABCDEF, kBefore = 0xA5A5A5A5A5A5A5A5;
constexpr std::uint64_t kLowOnly = (kBefore >> 32 << 32) | kLow;

struct Check {
  const char* name;
  void (*write)(PacketBuilder& builder, const Bench& bench, HostWrites way);
  bool (*is_right)(const Bench& bench);
};
constexpr Check kChecks[] = {
    {"NOP of one dword", [](PacketBuilder& b, const Bench&, HostWrites) { b.nop(3); },
     [](const Bench& m) { return m.word() == kBefore; }},
    {"NOP of many dwords", [](PacketBuilder& b, const Bench&, HostWrites) { b.long_nop(17); },
     [](const Bench& m) { return m.word() == kBefore; }},
    {"RELEASE_MEM of 64 bits", [](PacketBuilder& b, const Bench& m, HostWrites) { b.release(m.host.va, kPattern); },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"RELEASE_MEM of 32 bits",
     [](PacketBuilder& b, const Bench& m, HostWrites) { b.release(m.host.va, kPattern, pm4::kData32); },
     [](const Bench& m) { return m.word() == kLowOnly; }},
    {"RELEASE_MEM of the clock",
     [](PacketBuilder& b, const Bench& m, HostWrites) { b.release(m.host.va, 0, pm4::kDataClock); },
     [](const Bench& m) { return m.word() != kBefore && m.word() != 0; }},
    {"WRITE_DATA of a word",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       constexpr std::uint32_t kWord[] = {kLow};
       b.write(m.host.va, kWord);
     },
     [](const Bench& m) { return m.word() == kLowOnly; }},
    {"WRITE_DATA of four words",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       constexpr std::uint32_t kWords[] = {kLow, kPattern >> 32, kLow, kPattern >> 32};
       b.write(m.host.va, kWords);
     },
     [](const Bench& m) { return m.word() == kPattern && m.word(8) == kPattern; }},
    {"COPY_DATA of a number",
     [](PacketBuilder& b, const Bench& m, HostWrites) { b.copy(m.host.va, kPattern, pm4::kFromImmediate); },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"COPY_DATA of the clock",
     [](PacketBuilder& b, const Bench& m, HostWrites) { b.copy(m.host.va, 0, pm4::kFromClock); },
     [](const Bench& m) { return m.word() != kBefore && m.word() != 0; }},
    {"COPY_DATA of memory, 64 bits",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.copy(m.host.va + 8, kPattern, pm4::kFromImmediate);
       b.copy(m.host.va, m.host.va + 8, pm4::kFromMemory);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"COPY_DATA of memory, 32 bits",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.copy(m.host.va + 8, kPattern, pm4::kFromImmediate);
       b.copy(m.host.va, m.host.va + 8, pm4::kFromMemory, 0);
     },
     [](const Bench& m) { return m.word() == kLowOnly; }},
    {"WAIT_REG_MEM of memory, equal",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.copy(m.host.va, kPattern, pm4::kFromImmediate);
       b.wait_memory(m.host.va, pm4::kWaitEqual, kLow);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"WAIT_REG_MEM of memory, at least",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.copy(m.host.va, kPattern, pm4::kFromImmediate);
       b.wait_memory(m.host.va, pm4::kWaitAtLeast, 1);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"EVENT_WRITE and ACQUIRE_MEM, between dispatches",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.barrier();
       b.copy(m.host.va, kPattern, pm4::kFromImmediate);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"EVENT_WRITE and ACQUIRE_MEM, after the host",
     [](PacketBuilder& b, const Bench& m, HostWrites) {
       b.barrier(pm4::kAfterTheHost);
       b.copy(m.host.va, kPattern, pm4::kFromImmediate);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    // Before this check the host has written the first word of the device's page through the window.
    {"the window: the device reads what the host wrote",
     [](PacketBuilder& b, const Bench& m, HostWrites way) {
       b.flush_host_writes(way);
       b.barrier(pm4::kAfterTheHost);
       b.copy(m.host.va, m.device.va, pm4::kFromMemory);
     },
     [](const Bench& m) { return m.word() == kPattern; }},
    {"the window: the host reads what the device wrote",
     [](PacketBuilder& b, const Bench& m, HostWrites) { b.copy(m.device.va + 8, kLow, pm4::kFromImmediate); },
     [](const Bench& m) {
       std::uint64_t value;
       std::memcpy(&value, m.device.host + 8, sizeof(value));
       return value == kLow;
     }},
};

// Frees a check's memory at the end, even if the queue is lost.
class BenchMemory {
 public:
  explicit BenchMemory(AmdDevice& device) : device_(device) {}
  ~BenchMemory() {
    for (const auto* memory : {&bench.packets, &bench.host, &bench.device})
      if (memory->host != nullptr) device_.free(*memory);
  }
  Status alloc() {
    constexpr std::uint64_t kBytes = 4096;
    ZRT_TRY(bench.packets, device_.alloc(kBytes, AmdDevice::Domain::kHost));
    ZRT_TRY(bench.host, device_.alloc(kBytes, AmdDevice::Domain::kHost));
    ZRT_TRY(bench.device, device_.alloc(kBytes, AmdDevice::Domain::kDevice));
    return {};
  }
  Bench bench;

 private:
  AmdDevice& device_;
};

// Submits the packets in the builder as one buffer, and waits for them.
Status run(ProvenDevice& proven, const Bench& bench, PacketBuilder& builder) {
  const std::uint64_t fence = ++proven.last_fence;
  proven.queue().finish(builder, fence);
  const auto bytes = std::as_bytes(builder.dwords());
  std::memcpy(bench.packets.host, bytes.data(), bytes.size());
  ZRT_CHECK_OK(proven.queue().submit(bench.packets.va, static_cast<std::uint32_t>(builder.dwords().size()), fence));
  return proven.queue().wait(fence);
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::vector<DeviceCheck> check_packets(ProvenDevice& proven) {
  std::vector<DeviceCheck> checks;
  BenchMemory memory(proven.device());
  if (const auto status = memory.alloc(); !status) return {{{}, "memory for packets", status.error().message, 0}};
  const Bench& bench = memory.bench;
  PacketBuilder builder;
  for (const Check& check : kChecks) {
    for (std::uint64_t at = 0; at < 2 * sizeof(kBefore); at += sizeof(kBefore))
      std::memcpy(bench.host.host + at, &kBefore, sizeof(kBefore));
    std::memcpy(bench.device.host, &kPattern, sizeof(kPattern));
    builder.clear();
    check.write(builder, bench, proven.device().host_writes());
    const auto begin = std::chrono::steady_clock::now();
    const auto status = run(proven, bench, builder);
    DeviceCheck& done = checks.emplace_back(DeviceCheck{{}, check.name, {}, us_since(begin)});
    if (!status)
      done.error = status.error().message;
    else if (!check.is_right(bench))
      done.error = fmt::format("memory holds {:#x} and {:#x} after it", bench.word(), bench.word(8));
    if (!status) break;
  }
  return checks;
}

// Submits more buffers than a ring has space for, one after another.
DeviceCheck check_many_buffers(ProvenDevice& proven) {
  constexpr int kBuffers = 5000;
  const auto begin = std::chrono::steady_clock::now();
  BenchMemory memory(proven.device());
  Status status = memory.alloc();
  PacketBuilder builder;
  for (int i = 0; i < kBuffers && status; ++i) {
    builder.clear();
    status = run(proven, memory.bench, builder);
  }
  return {{}, "5,000 buffers, one after another", status ? std::string() : status.error().message, us_since(begin)};
}

}  // namespace zinc_rt::ring
