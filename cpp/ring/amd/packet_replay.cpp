#include "ring/amd/packet_replay.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "kernels/rdna/op_args.h"

namespace zinc_rt::ring {
namespace {

std::uint64_t joined(const std::uint32_t (&words)[2]) {
  return words[0] | std::uint64_t{words[1]} << 32;
}

class Replay {
 public:
  explicit Replay(ProvenDevice& proven) : proven_(proven) {}
  ~Replay() {
    for (const auto& [va, region] : regions_) proven_.device().free(region.memory);
    for (const auto* memory : {&packets_, &arguments_})
      if (memory->host != nullptr) proven_.device().free(*memory);
  }

  Status take(const LogRecord& record) {
    switch (record.kind) {
      case LogRecord::kStart: return start(record);
      case LogRecord::kKernel: return {};
      case LogRecord::kRegion: return add_region(record);
      case LogRecord::kGone: return drop_region(record.va);
      case LogRecord::kPages: return write_pages(record);
      case LogRecord::kRun: return run(packets_of(record));
      case LogRecord::kResult: return compare(record);
    }
    return {};
  }
  std::vector<DeviceCheck> checks;

 private:
  struct Region {
    AmdDevice::Memory memory;
    std::string name;
  };

  Status start(const LogRecord& record) const {
    const auto target = static_cast<kernel::Target>(record.value);
    if (target == proven_.device().target()) return {};
    return fail(StatusCode::kUnavailable, "[amd] the log is of a device for {}, this one is for {}", to_string(target),
                to_string(proven_.device().target()));
  }
  Status add_region(const LogRecord& record) {
    if (record.value == 0 || record.value % kLogPage != 0 || regions_.contains(record.va))
      return fail(StatusCode::kCorrupt, "[amd] the log has a region of {} bytes at {:#x}", record.value, record.va);
    ZRT_TRY(const auto memory, proven_.device().alloc(record.value, static_cast<AmdDevice::Domain>(record.domain)));
    std::memset(memory.host, 0, memory.bytes);
    regions_[record.va] = {memory,
                           std::string(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size())};
    return {};
  }
  Status drop_region(std::uint64_t va) {
    const auto it = regions_.find(va);
    if (it == regions_.end()) return fail(StatusCode::kCorrupt, "[amd] the log ends a region at {:#x} twice", va);
    proven_.device().free(it->second.memory);
    regions_.erase(it);
    return {};
  }
  Status write_pages(const LogRecord& record) {
    constexpr std::uint64_t kEntry = sizeof(std::uint64_t) + kLogPage;
    const auto it = regions_.find(record.va);
    for (std::uint64_t at = 0; at < record.bytes.size(); at += kEntry) {
      std::uint64_t page = 0;
      if (record.bytes.size() - at >= kEntry) std::memcpy(&page, record.bytes.data() + at, sizeof(page));
      if (record.bytes.size() - at < kEntry || it == regions_.end() || page >= it->second.memory.bytes / kLogPage)
        return fail(StatusCode::kCorrupt, "[amd] the log has page {} of a region at {:#x}", page, record.va);
      std::memcpy(it->second.memory.host + page * kLogPage, record.bytes.data() + at + sizeof(page), kLogPage);
    }
    return {};
  }

  // Returns the address on this device of what was at the address `va` in the log. Errors: kCorrupt.
  Result<std::uint64_t> moved(std::uint64_t va) const {
    ZRT_TRY(const auto region, find(va, 1));
    return region->second.memory.va + (va - region->first);
  }
  Result<std::map<std::uint64_t, Region>::const_iterator> find(std::uint64_t va, std::uint64_t bytes) const {
    auto it = regions_.upper_bound(va);
    if (it != regions_.begin() && va - (--it)->first <= it->second.memory.bytes &&
        bytes <= it->second.memory.bytes - (va - it->first))
      return it;
    return fail(StatusCode::kCorrupt, "[amd] the log has the address {:#x}, which is in no region", va);
  }
  // Copies a dispatch's arguments, and translates the log's addresses in them. Each kernel has its own layout of
  // arguments. So every 64-bit word that is an address within a region is taken for an address. A number is never taken
  // for one, because the upper half of every region's address is large.
  Result<std::uint64_t> moved_arguments(std::uint64_t va, std::uint64_t n_before) {
    std::uint64_t words[sizeof(rdna::OpArgs) / sizeof(std::uint64_t)];
    ZRT_TRY(const auto region, find(va, sizeof(words)));
    std::memcpy(words, region->second.memory.host + (va - region->first), sizeof(words));
    for (std::uint64_t& word : words)
      if (const auto now = moved(word)) word = *now;
    const std::uint64_t at = n_before * sizeof(words);
    std::memcpy(arguments_.host + at, words, sizeof(words));
    return arguments_.va + at;
  }
  // Writes the same packets with this device's addresses. Before each dispatch it sets the registers that hold
  // addresses again.
  Status move_addresses(std::span<const std::uint32_t> body, PacketBuilder& builder) {
    std::uint32_t code[2] = {}, arguments[2] = {};
    std::uint64_t n_dispatches = 0;
    for (std::size_t at = 0; at < body.size();) {
      const std::uint32_t header = body[at], opcode = header >> 8 & 255;
      const std::size_t n = header == pm4::kOneDwordNop ? 0 : (header >> 16 & 0x3FFF) + 1;
      if (n > body.size() - at - 1)
        return fail(StatusCode::kCorrupt, "[amd] the log has a packet of {} dwords at {} of {}", n, at, body.size());
      const auto packet = body.subspan(at, 1 + n);
      at += 1 + n;
      if (opcode == pm4::kSetShReg && (take(packet, pm4::kPgmLo, code) || take(packet, pm4::kUserData0, arguments)))
        continue;
      if (opcode == pm4::kDispatchDirect) {
        ZRT_TRY(const auto code_now, moved(joined(code) << 8));
        ZRT_TRY(const auto arguments_now, moved_arguments(joined(arguments), n_dispatches++));
        builder.use(code_now, arguments_now);
      }
      builder.append(packet);
    }
    return {};
  }
  // Looks at a SET_SH_REG packet. If the packet writes no register except `first` and the next one, stores what it
  // writes in `values` and returns true.
  static bool take(std::span<const std::uint32_t> packet, pm4::Register first, std::uint32_t (&values)[2]) {
    const std::size_t at = pm4::kShBase + packet[1] - first;
    if (at > 1 || at + packet.size() - 2 > 2) return false;
    std::ranges::copy(packet.subspan(2), values + at);
    return true;
  }
  Status reserve(AmdDevice::Memory& memory, std::uint64_t bytes) {
    if (bytes <= memory.bytes) return {};
    if (memory.host != nullptr) proven_.device().free(memory);
    memory = {};
    ZRT_TRY(memory, proven_.device().alloc(bytes, AmdDevice::Domain::kHost));
    return {};
  }
  Status run(const std::vector<std::uint32_t>& body) {
    ZRT_CHECK_OK(reserve(arguments_, std::max<std::uint64_t>(1, body.size()) * sizeof(rdna::OpArgs)));
    PacketBuilder builder;
    builder.flush_host_writes(proven_.device().host_writes());
    ZRT_CHECK_OK(move_addresses(body, builder));
    proven_.queue().finish(builder, ++proven_.last_fence);
    const auto packets = std::as_bytes(builder.dwords());
    ZRT_CHECK_OK(reserve(packets_, packets.size()));
    std::memcpy(packets_.host, packets.data(), packets.size());
    const auto begin = std::chrono::steady_clock::now();
    ZRT_CHECK_OK(
        proven_.queue().submit(packets_.va, static_cast<std::uint32_t>(builder.dwords().size()), proven_.last_fence));
    ZRT_CHECK_OK(proven_.queue().wait(proven_.last_fence));
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    checks.push_back({{}, fmt::format("submission {} of {} dwords", checks.size() + 1, body.size()), {}, us.count()});
    return {};
  }
  Status compare(const LogRecord& record) {
    const auto it = regions_.find(record.va);
    if (it == regions_.end() || checks.empty())
      return fail(StatusCode::kCorrupt, "[amd] the log has a result of a region at {:#x}", record.va);
    const auto& memory = it->second.memory;
    if (hash_of({memory.host, memory.bytes}) != record.value)
      checks.back().error += fmt::format("{}{} differs", checks.back().error.empty() ? "" : ", ", it->second.name);
    return {};
  }

  ProvenDevice& proven_;
  std::map<std::uint64_t, Region> regions_;  // key: the region's address in the log
  AmdDevice::Memory packets_, arguments_;
};

}  // namespace

Result<std::vector<DeviceCheck>> replay_packets(std::span<const std::byte> log, ProvenDevice& proven) {
  ZRT_TRY(const auto records, read_packet_log(log));
  Replay replay(proven);
  for (const LogRecord& record : records) ZRT_CHECK_OK(replay.take(record));
  return std::move(replay.checks);
}

}  // namespace zinc_rt::ring
