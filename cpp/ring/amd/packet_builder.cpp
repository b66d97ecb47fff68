#include "ring/amd/packet_builder.h"

#include <algorithm>

namespace zinc_rt::ring {
namespace {

std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

void PacketBuilder::clear() {
  dwords_.clear();
  known_.reset();
}

void PacketBuilder::packet(pm4::Opcode opcode, std::initializer_list<std::uint32_t> body) {
  dwords_.push_back(pm4::header(opcode, static_cast<std::uint32_t>(body.size())));
  dwords_.insert(dwords_.end(), body);
}

void PacketBuilder::set(pm4::Register first, std::initializer_list<std::uint32_t> values) {
  const std::size_t at = std::uint32_t{first} - pm4::kShBase;
  const auto is_known = [&](std::size_t i) { return known_[at + i] && values_[at + i] == values.begin()[i]; };
  std::size_t begin = 0, end = values.size();
  while (begin < end && is_known(begin)) ++begin;
  while (end > begin && is_known(end - 1)) --end;
  if (begin == end) return;
  dwords_.push_back(pm4::header(pm4::kSetShReg, static_cast<std::uint32_t>(end - begin) + 1));
  dwords_.push_back(static_cast<std::uint32_t>(at + begin));
  for (std::size_t i = begin; i < end; ++i) {
    dwords_.push_back(values.begin()[i]);
    values_[at + i] = values.begin()[i];
    known_.set(at + i);
  }
}

void PacketBuilder::barrier(std::uint32_t gcr) {
  constexpr std::uint32_t kAllBytesLow = 0xFFFFFFFF, kAllBytesHigh = 0xFF, kPollInterval = 10;
  packet(pm4::kEventWrite, {pm4::kFlushEvent});
  packet(pm4::kAcquireMem, {0, kAllBytesLow, kAllBytesHigh, 0, 0, kPollInterval, gcr});
}

void PacketBuilder::flush_host_writes(HostWrites way) {
  const std::size_t end = dwords_.size() + kFlushDwords;
  if (way == HostWrites::kRegisters)
    packet(pm4::kWaitRegMem, {pm4::kWaitEqual | pm4::kWriteThenWait, pm4::kHdpFlushRequest, pm4::kHdpFlushDone,
                              pm4::kHdpAll, pm4::kHdpAll, pm4::kHdpPollInterval});
  if (way == HostWrites::kPacket) packet(pm4::kHdpFlush, {0});
  nop(static_cast<std::uint32_t>(end - dwords_.size()));
}

void PacketBuilder::dispatch(const KernelCode& kernel, std::uint64_t code, std::uint64_t arguments,
                             std::uint32_t threads, const std::uint32_t (&groups)[3]) {
  set(pm4::kStartX, {0, 0, 0});
  set(pm4::kNumThreadX, {threads, 1, 1});
  set(pm4::kPgmRsrc1, {kernel.rsrc1, kernel.rsrc2 | pm4::lds_field(kernel.lds_bytes)});
  set(pm4::kResourceLimits, {0});
  set(pm4::kTmpringSize, {0});
  set(pm4::kRestartX, {0, 0, 0});
  set(pm4::kPgmRsrc3, {kernel.rsrc3});
  use(code + kernel.entry, arguments);
  packet(pm4::kDispatchDirect,
         {groups[0], groups[1], groups[2], pm4::kShaderEnable | pm4::kForceStartAt000 | pm4::kWave32});
}

void PacketBuilder::use(std::uint64_t entry, std::uint64_t arguments) {
  set(pm4::kPgmLo, {low(entry >> 8), low(entry >> 40)});
  set(pm4::kUserData0, {low(arguments), high(arguments)});
}

void PacketBuilder::release(std::uint64_t at, std::uint64_t value, std::uint32_t data) {
  packet(pm4::kReleaseMem,
         {pm4::kReleaseEvent, data << pm4::kDataShift, low(at), high(at), low(value), high(value), 0});
}

void PacketBuilder::write(std::uint64_t at, std::span<const std::uint32_t> words) {
  dwords_.push_back(pm4::header(pm4::kWriteData, static_cast<std::uint32_t>(words.size()) + 3));
  dwords_.insert(dwords_.end(), {pm4::kToMemory | pm4::kConfirmWrite, low(at), high(at)});
  dwords_.insert(dwords_.end(), words.begin(), words.end());
}

void PacketBuilder::copy(std::uint64_t to, std::uint64_t from, std::uint32_t source, std::uint32_t count) {
  packet(pm4::kCopyData,
         {source | pm4::kToMemory | count | pm4::kConfirmWrite, low(from), high(from), low(to), high(to)});
}

void PacketBuilder::wait_memory(std::uint64_t at, std::uint32_t function, std::uint32_t value) {
  packet(pm4::kWaitRegMem, {function | pm4::kWaitMemory, low(at), high(at), value, 0xFFFFFFFF, pm4::kWaitPollInterval});
}

void PacketBuilder::indirect(std::uint64_t at, std::uint32_t n_dwords, std::uint32_t flags) {
  packet(pm4::kIndirectBuffer, {low(at), high(at), n_dwords | flags});
}

void PacketBuilder::aql_indirect(std::uint64_t at, std::uint32_t n_dwords) {
  dwords_.push_back(pm4::kAqlVendor | pm4::kAqlBarrier | pm4::kAqlAcquireSystem | pm4::kAqlReleaseSystem |
                    pm4::kAqlFormatPm4 << 16);
  indirect(at, n_dwords);
  dwords_.push_back(pm4::kAqlRest);
  dwords_.resize(dwords_.size() + pm4::kAqlRest, 0);
}

void PacketBuilder::nop(std::uint32_t n_dwords) {
  dwords_.insert(dwords_.end(), n_dwords, pm4::kOneDwordNop);
}

void PacketBuilder::append(std::span<const std::uint32_t> packets) {
  dwords_.insert(dwords_.end(), packets.begin(), packets.end());
}

void PacketBuilder::long_nop(std::uint32_t n_dwords) {
  dwords_.push_back(pm4::header(pm4::kNop, n_dwords - 1));
  dwords_.insert(dwords_.end(), n_dwords - 1, 0);
}

void PacketBuilder::pad(std::uint32_t multiple) {
  const auto over = static_cast<std::uint32_t>(dwords_.size() % multiple);
  nop(over == 0 ? 0 : multiple - over);
}

}  // namespace zinc_rt::ring
