#include "amd_sim/command_processor.h"

#include <atomic>

#include "ring/amd/pm4.h"

namespace amd_sim {
namespace {

namespace pm4 = zinc_rt::ring::pm4;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::string hex(u64 v) {
  char b[32];
  std::snprintf(b, sizeof b, "0x%llx", static_cast<unsigned long long>(v));
  return b;
}
// Words that the host polls, and those that it writes while the device reads.
void publish(std::uint8_t* at, u64 value) {
  std::atomic_ref(*reinterpret_cast<u64*>(at)).store(value, std::memory_order_release);
}
u64 observe(const std::uint8_t* at) {
  return std::atomic_ref(*reinterpret_cast<u64*>(const_cast<std::uint8_t*>(at))).load(std::memory_order_acquire);
}
[[noreturn]] void bad(const std::string& what) {
  throw Fault(kMalformed, "PM4: " + what);
}

}  // namespace

CommandProcessor::CommandProcessor(Machine& machine, Order order, std::function<void(const std::string&)> lint)
    : m_(machine), order_(order), lint_(std::move(lint)) {}

u32 CommandProcessor::read32(u64 va) const {
  u32 v;
  std::memcpy(&v, m_.memory.at(va, 4, false, "a read of the command processor", 0), 4);
  return v;
}

u32 CommandProcessor::reg(u32 r, const char* name) {
  const auto it = regs.find(r);
  if (it == regs.end()) bad(std::string("dispatch, but ") + name + " (" + hex(r) + ") was never written");
  return it->second;
}

void CommandProcessor::dispatch(u32 x, u32 y, u32 z, u32 initiator) {
  if (!(initiator & pm4::kShaderEnable)) bad("DISPATCH_INITIATOR without COMPUTE_SHADER_EN");
  if (!(initiator & pm4::kWave32)) bad("DISPATCH_INITIATOR without CS_W32_EN: wave64 is not supported");
  if (!(initiator & pm4::kForceStartAt000)) lint_("DISPATCH_INITIATOR without FORCE_START_AT_000");
  if (initiator & pm4::kThreadDimensions) bad("USE_THREAD_DIMENSIONS is not supported");
  Dispatch d;
  d.gfx11 = m_.arch.compare(0, 5, "gfx11") == 0;
  d.pgm = static_cast<u64>(reg(pm4::kPgmLo, "PGM_LO")) << 8 | static_cast<u64>(reg(pm4::kPgmLo + 1, "PGM_HI")) << 40;
  d.rsrc1 = reg(pm4::kPgmRsrc1, "PGM_RSRC1"), d.rsrc2 = reg(pm4::kPgmRsrc2, "PGM_RSRC2"),
  d.rsrc3 = reg(pm4::kPgmRsrc3, "PGM_RSRC3");
  for (u32 k = 0; k < 3; ++k) {
    d.threads[k] = reg(pm4::kNumThreadX + k, "NUM_THREAD");
    if (d.threads[k] >> 16) bad("partial workgroups are not supported");
    d.threads[k] &= 0xFFFF;
    if (const auto s = regs.find(pm4::kStartX + k); s == regs.end() || s->second != 0) lint_("START_X/Y/Z is not 0");
  }
  if (d.threads[0] * d.threads[1] * d.threads[2] - 1 >= 1024)
    bad("a workgroup of " + std::to_string(d.threads[0] * d.threads[1] * d.threads[2]) + " threads");
  if (const auto it = regs.find(pm4::kResourceLimits); it == regs.end()) lint_("RESOURCE_LIMITS was never written");
  const u32 n_user = d.rsrc2 >> pm4::kUserSgprShift & pm4::kUserSgprMask;
  const u32 real = d.gfx11 && n_user > 8 ? 0 : n_user;  // gfx11: clang pads the number, so only what is there counts
  for (u32 k = 0; k < 16; ++k) {
    const auto it = regs.find(pm4::kUserData0 + k);
    if (it == regs.end() && k < real) bad("dispatch, but USER_DATA_" + std::to_string(k) + " was never written");
    d.user[k] = it == regs.end() ? 0xBAD0BAD0 : it->second;
  }
  if ((d.rsrc1 >> 12 & 0xFF) != 0xF0 && (d.rsrc1 >> 12 & 0xFF) != 0xC0)
    bad("FLOAT_MODE " + hex(d.rsrc1 >> 12 & 0xFF) + ": only round to nearest with subnormals kept (0xF0)");
  if ((d.rsrc1 >> 12 & 0xF0) != 0xF0) lint_("f32 subnormals are flushed by this FLOAT_MODE; the emulator keeps them");
  if (d.rsrc2 & pm4::kScratchEnable) {
    d.tmpring = reg(pm4::kTmpringSize, "TMPRING_SIZE");
    d.scratch = static_cast<u64>(reg(pm4::kScratchBaseLo, "SCRATCH_BASE_LO")) << 8 |
                static_cast<u64>(reg(pm4::kScratchBaseLo + 1, "SCRATCH_BASE_HI")) << 40;
    if ((d.tmpring & 0xFFF) == 0 || d.tmpring >> 12 == 0) bad("SCRATCH_EN, but TMPRING_SIZE has no waves or no bytes");
  }
  d.groups[0] = x, d.groups[1] = y, d.groups[2] = z;
  d.first_group = groups_;
  groups_ += x * y * z;
  if (!acquired_) lint_("the first dispatch has no ACQUIRE_MEM before it: stale caches");
  if (m_.memory.find(d.pgm) == nullptr)
    throw Fault(kMemoryFault, "GPU fault: PGM " + hex(d.pgm) + " is in no region", d.pgm);
  held_.push_back(d);
  seen.dispatches++;
  flushed_ = false;
}

void CommandProcessor::flush() {
  if (!held_.empty()) m_.run(held_, order_ == Order::reverse, &dispatches);
  held_.clear();
  m_.memory.order();
  flushed_ = true;
}
void CommandProcessor::finish() {
  if (!held_.empty()) lint_("the stream ends with dispatches that nothing waits for");
  flush();
}

// A fence grows.
void CommandProcessor::fence(u64 va, u64 value) {
  const auto [last, is_new] = fences_.try_emplace(va, value);
  if (!is_new && value <= last->second)
    lint_("the fence at " + hex(va) + " goes from " + std::to_string(last->second) + " to " + std::to_string(value) +
          ": it was overtaken");
  last->second = value;
}

bool CommandProcessor::indirect(u64 va, u32 n) {
  std::vector<u32> ib(n);
  std::memcpy(ib.data(), m_.memory.at(va, static_cast<u64>(n) * 4, false, "INDIRECT_BUFFER", 0),
              static_cast<std::size_t>(n) * 4);
  std::size_t k = resume_;
  while (k < ib.size()) {
    const std::size_t taken = packet(ib, k);
    if (taken == 0) return resume_ = k, false;
    k += taken;
  }
  resume_ = 0;
  return true;
}

std::size_t CommandProcessor::packet(const std::vector<u32>& at, std::size_t k) {
  const u32 header = at[k], type = header >> 30;
  if (type == 2 || header == pm4::kOneDwordNop) return seen.dwords++, 1;  // filler, one-dword NOP
  if (type != 3) bad("dword " + std::to_string(k) + " is " + hex(header) + ": no packet of type 3");
  const u32 n = (header >> 16 & 0x3FFF) + 1, op = header >> 8 & 0xFF;
  if (k + 1 + n > at.size()) bad("packet " + hex(op) + " at dword " + std::to_string(k) + " is longer than the stream");
  const u32* b = &at[k + 1];
  const auto want = [&](u32 least, u32 most) {
    if (n < least || n > most) bad("packet " + hex(op) + " has a body of " + std::to_string(n) + " dwords");
  };
  const auto address = [&](u32 i) { return b[i] | static_cast<u64>(b[i + 1] & 0xFFFF) << 32; };
  const auto write = [&](u64 va, u64 value, u32 bytes, const char* what) {
    std::uint8_t* at = m_.memory.at(va, bytes, true, what, 0);
    if (bytes == 8 && va % 8 == 0)
      publish(at, value);
    else
      std::memcpy(at, &value, bytes);
  };
  switch (op) {
    case pm4::kNop: break;
    case pm4::kSetShReg:
      want(2, 0x3FFF);
      if (b[0] >= pm4::kShEnd - pm4::kShBase)
        bad("SET_SH_REG of " + hex(b[0]) + ": the operand is the register - 0x2C00");
      for (u32 i = 1; i < n; ++i) regs[pm4::kShBase + b[0] + i - 1] = b[i];
      break;
    case pm4::kSetUconfigReg:
      for (u32 i = 1; i < n; ++i) regs[pm4::kUconfigBase + b[0] + i - 1] = b[i];
      break;
    case pm4::kAcquireMem:
      want(7, 7);
      if (!flushed_) lint_("ACQUIRE_MEM with dispatches in flight: it does not wait for them (CS_PARTIAL_FLUSH first)");
      acquired_ = true;
      seen.acquires++;
      break;
    case pm4::kDispatchDirect:
      want(4, 4);
      dispatch(b[0], b[1], b[2], b[3]);
      break;
    case pm4::kEventWrite:
      if (b[0] == pm4::kFlushEvent)
        flush(), seen.flushes++;
      else if ((b[0] & 63) == pm4::kCsPartialFlush)
        bad("CS_PARTIAL_FLUSH with index " + std::to_string(b[0] >> 8 & 15) + ": 4 is wanted (0x407)");
      break;
    case pm4::kReleaseMem: {
      want(7, 7);
      flush();
      const u32 data_sel = b[1] >> pm4::kDataShift;
      const u64 va = address(2);
      if ((b[0] & pm4::kReleaseWriteBackL2) == 0 && data_sel != 0)
        lint_("RELEASE_MEM without GL2_WB: the host may not see what kernels wrote");
      if (data_sel == pm4::kData32) write(va, b[4], 4, "RELEASE_MEM");
      if (data_sel == pm4::kData64 || data_sel == pm4::kDataClock) {
        if (data_sel == pm4::kData64) fence(va, b[4] | static_cast<u64>(b[5]) << 32);
        if (va % 8) bad("RELEASE_MEM of 64 bits to " + hex(va));
        write(va, data_sel == pm4::kDataClock ? clock() : b[4] | static_cast<u64>(b[5]) << 32, 8, "RELEASE_MEM");
      }
      seen.releases++;
      break;
    }
    case pm4::kWaitRegMem: {
      want(6, 6);
      if (!(b[0] >> 4 & 1)) {  // a register: of the HDP flush
        if (!may_use_registers || is_of_user) bad("WAIT_REG_MEM of a register, which this queue may not use");
        break;
      }
      const u32 have = read32(address(1)) & b[4], ref = b[3];
      bool ok = true;
      switch (b[0] & 7) {
        case 1: ok = have < ref; break;
        case 2: ok = have <= ref; break;
        case 3: ok = have == ref; break;
        case 4: ok = have != ref; break;
        case 5: ok = have >= ref; break;
        case 6: ok = have > ref; break;
        default: break;
      }
      if (!ok) {
        flush();  // what runs may be what is waited for
        const u32 again = read32(address(1)) & b[4];
        if (again == have) return 0;
        return packet(at, k);
      }
      break;
    }
    case pm4::kWriteData:
      want(4, 0x3FFF);
      if (!flushed_)
        lint_("WRITE_DATA overtakes dispatches in flight: it does not wait for them, so it is no fence (RELEASE_MEM)");
      if ((b[0] >> 8 & 15) == 5 || (b[0] >> 8 & 15) == 2)
        for (u32 i = 3; i < n; ++i) write(address(1) + (b[0] >> 16 & 1 ? 0 : (i - 3) * 4ull), b[i], 4, "WRITE_DATA");
      break;
    case pm4::kCopyData: {
      want(5, 5);
      const u32 bytes = b[0] >> 16 & 1 ? 8 : 4, from = b[0] & 15, to = b[0] >> 8 & 15;
      u64 v = 0;
      if (from == 2 || from == 1)
        std::memcpy(&v, m_.memory.at(address(1), bytes, false, "COPY_DATA", 0), bytes);
      else if (from == 5)
        v = b[1] | static_cast<u64>(b[2]) << 32;
      else if (from == 9)
        v = clock();
      else
        bad("COPY_DATA from " + std::to_string(from));
      if (to == 5 || to == 2 || to == 1) write(address(3), v, bytes, "COPY_DATA");
      break;
    }
    case pm4::kIndirectBuffer: {
      want(3, 3);
      if (!(b[2] & pm4::kIndirectValid)) bad("INDIRECT_BUFFER without VALID");
      if (b[0] & 3) bad("INDIRECT_BUFFER at " + hex(b[0]));
      if (is_of_user && !(b[2] & pm4::kIndirectInheritVmid))
        bad("INDIRECT_BUFFER of a user queue without INHERIT_VMID");
      if (!indirect(address(0), b[2] & pm4::kIndirectDwordsMask)) return 0;
      break;
    }
    case pm4::kHdpFlush: want(1, 1); break;
    default: bad("opcode " + hex(op) + " at dword " + std::to_string(k) + " is not known");
  }
  seen.packets++;
  seen.dwords += 1 + n;
  return 1 + n;
}

bool CommandProcessor::run(const Ring& ring) {
  u64 rptr = observe(m_.memory.at(ring.rptr, 8, false, "rptr", 0));
  const u64 wptr = observe(m_.memory.at(ring.wptr, 8, false, "wptr", 0));
  if (wptr < rptr || wptr - rptr > ring.dwords)
    bad("wptr " + std::to_string(wptr) + " and rptr " + std::to_string(rptr) + ": both count dwords and never wrap");
  std::vector<u32> stream;
  for (u64 k = rptr; k < wptr; ++k) stream.push_back(read32(ring.base + k % ring.dwords * 4));
  std::size_t k = 0;
  while (k < stream.size()) {
    const std::size_t taken = packet(stream, k);
    if (taken == 0) break;
    k += taken;
    rptr += taken;
  }
  publish(m_.memory.at(ring.rptr, 8, true, "rptr", 0), rptr);
  return k == stream.size();
}
bool CommandProcessor::run_aql(const Ring& ring) {
  u64 rptr = observe(m_.memory.at(ring.rptr, 8, false, "rptr", 0));
  const u64 wptr = observe(m_.memory.at(ring.wptr, 8, false, "wptr", 0));
  const u64 size = ring.dwords / pm4::kAqlDwords;
  if (wptr < rptr || wptr - rptr > size)
    bad("wptr " + std::to_string(wptr) + " and rptr " + std::to_string(rptr) + ": both count packets and never wrap");
  for (; rptr < wptr; ++rptr) {
    std::vector<u32> words;
    for (u32 k = 0; k < pm4::kAqlDwords; ++k)
      words.push_back(read32(ring.base + (rptr % size * pm4::kAqlDwords + k) * 4));
    if ((words[0] & pm4::kAqlTypeMask) != pm4::kAqlVendor || words[0] >> 16 != pm4::kAqlFormatPm4)
      bad("AQL packet " + std::to_string(rptr) + " has the header " + hex(words[0]) + ": PM4 is wanted");
    if ((words[0] & pm4::kAqlBarrier) == 0) bad("AQL packet " + std::to_string(rptr) + " has no barrier bit");
    const std::vector<u32> pm4_part(words.begin() + 1, words.begin() + 5);
    if (words[5] != pm4::kAqlRest) bad("AQL packet " + std::to_string(rptr) + " has " + hex(words[5]));
    if (packet(pm4_part, 0) == 0) break;
  }
  publish(m_.memory.at(ring.rptr, 8, true, "rptr", 0), rptr);
  return rptr == wptr;
}
bool CommandProcessor::run(const std::vector<u32>& stream) {
  std::size_t k = 0;
  while (k < stream.size()) {
    const std::size_t taken = packet(stream, k);
    if (taken == 0) return false;
    k += taken;
  }
  return true;
}

}  // namespace amd_sim
