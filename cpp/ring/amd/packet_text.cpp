#include "ring/amd/packet_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "ring/amd/pm4.h"

namespace zinc_rt::ring {
namespace {

struct OpcodeRow {
  pm4::Opcode opcode;
  const char* name;
};
constexpr OpcodeRow kOpcodes[] = {{pm4::kNop, "NOP"},
                                  {pm4::kDispatchDirect, "DISPATCH_DIRECT"},
                                  {pm4::kWaitRegMem, "WAIT_REG_MEM"},
                                  {pm4::kWriteData, "WRITE_DATA"},
                                  {pm4::kIndirectBuffer, "INDIRECT_BUFFER"},
                                  {pm4::kCopyData, "COPY_DATA"},
                                  {pm4::kEventWrite, "EVENT_WRITE"},
                                  {pm4::kReleaseMem, "RELEASE_MEM"},
                                  {pm4::kAcquireMem, "ACQUIRE_MEM"},
                                  {pm4::kSetShReg, "SET_SH_REG"},
                                  {pm4::kSetUconfigReg, "SET_UCONFIG_REG"},
                                  {pm4::kHdpFlush, "HDP_FLUSH"}};

struct RegisterRow {
  pm4::Register number;
  const char* name;
  std::uint32_t shift;  // if the register holds an address, in units of 1 << shift bytes; else kNoAddress
};
constexpr std::uint32_t kNoAddress = 64;
constexpr RegisterRow kRegisters[] = {{pm4::kStartX, "START_X", kNoAddress},
                                      {pm4::kNumThreadX, "NUM_THREAD_X", kNoAddress},
                                      {pm4::kPgmLo, "PGM_LO", 8},
                                      {pm4::kScratchBaseLo, "SCRATCH_BASE_LO", 8},
                                      {pm4::kPgmRsrc1, "PGM_RSRC1", kNoAddress},
                                      {pm4::kResourceLimits, "RESOURCE_LIMITS", kNoAddress},
                                      {pm4::kTmpringSize, "TMPRING_SIZE", kNoAddress},
                                      {pm4::kRestartX, "RESTART_X", kNoAddress},
                                      {pm4::kPgmRsrc3, "PGM_RSRC3", kNoAddress},
                                      {pm4::kUserData0, "USER_DATA_0", 0}};

// Calls see(opcode, body) for each packet. For a NOP of one dword the body is empty.
template <class See>
Status for_each_packet(std::span<const std::uint32_t> packets, const See& see) {
  for (std::size_t at = 0; at < packets.size();) {
    const std::uint32_t header = packets[at];
    const std::size_t n = header == pm4::kOneDwordNop ? 0 : (header >> 16 & 0x3FFF) + 1;
    if (header >> 30 != 3 || n > packets.size() - at - 1)
      return fail(StatusCode::kCorrupt, "[amd] dword {} of {} is {:#x}, no packet", at, packets.size(), header);
    see(static_cast<pm4::Opcode>(header >> 8 & 255), packets.subspan(at + 1, n));
    at += 1 + n;
  }
  return {};
}

std::string numbers(std::span<const std::uint32_t> values) {
  std::string text;
  for (const std::uint32_t value : values)
    text += value < 10 ? fmt::format(" {}", value) : fmt::format(" {:#x}", value);
  return text;
}

}  // namespace

Result<std::string> packet_text(std::span<const std::uint32_t> packets, const NameOf& name_of) {
  std::string text;
  // The array has one element more than there are registers, because the high half of an address is in the next
  // register.
  std::array<std::uint32_t, pm4::kShEnd - pm4::kShBase + 1> registers{};
  ZRT_CHECK_OK(for_each_packet(packets, [&](pm4::Opcode opcode, std::span<const std::uint32_t> body) {
    const auto* row = std::ranges::find(kOpcodes, opcode, &OpcodeRow::opcode);
    text += row == std::end(kOpcodes) ? fmt::format("OPCODE_{:#x}", static_cast<std::uint32_t>(opcode)) : row->name;
    if (opcode == pm4::kSetShReg && body.size() > 1 && body[0] + body.size() <= registers.size()) {
      const auto values = body.subspan(1);
      std::ranges::copy(values, registers.begin() + body[0]);
      const std::uint32_t number = pm4::kShBase + body[0];
      const auto* reg = std::ranges::find_if(kRegisters, [&](const auto& r) { return r.number == number; });
      const bool is_address = reg != std::end(kRegisters) && reg->shift != kNoAddress;
      text += reg == std::end(kRegisters) ? fmt::format(" {:#x}", number) : fmt::format(" {}", reg->name);
      text += is_address
                  ? " " + name_of((registers[body[0]] | std::uint64_t{registers[body[0] + 1]} << 32) << reg->shift)
                  : numbers(values);
    } else {
      text += numbers(body);
    }
    text += '\n';
  }));
  return text;
}

Result<PacketCounts> count_packets(std::span<const std::uint32_t> packets) {
  PacketCounts counts;
  counts.dwords = packets.size();
  std::uint64_t of_dispatch = 0, of_barrier = 0;
  ZRT_CHECK_OK(for_each_packet(packets, [&](pm4::Opcode opcode, std::span<const std::uint32_t> body) {
    const std::uint64_t dwords = 1 + body.size();
    if (opcode == pm4::kEventWrite || opcode == pm4::kAcquireMem) {
      of_barrier += dwords;
      if (opcode == pm4::kEventWrite) return;
      ++counts.barriers;
      counts.most_of_a_barrier = std::max(counts.most_of_a_barrier, std::exchange(of_barrier, 0));
    } else {
      of_dispatch += dwords;
      if (opcode != pm4::kDispatchDirect) return;
      if (counts.dispatches++ > 0) counts.most_of_a_dispatch = std::max(counts.most_of_a_dispatch, of_dispatch);
      of_dispatch = 0;
    }
  }));
  return counts;
}

}  // namespace zinc_rt::ring
