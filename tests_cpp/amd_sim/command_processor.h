// A compute queue's command processor: reads packets from a ring, keeps registers, hands dispatches to a Machine.
#pragma once

#include <deque>
#include <functional>

#include "amd_sim/machine.h"

namespace amd_sim {

enum class Order { fifo, reverse };  // of dispatches that no barrier orders

struct Ring {
  std::uint64_t base = 0, dwords = 0;  // GPU address and size of the ring
  std::uint64_t rptr = 0, wptr = 0;    // GPU addresses of the two counters: of dwords, or of packets of AQL
};

class CommandProcessor {
 public:
  CommandProcessor(Machine& machine, Order order, std::function<void(const std::string&)> lint);
  // Executes what lies between rptr and wptr, and advances rptr. False when it waits (WAIT_REG_MEM) for what no packet
  // of this queue has written.
  bool run(const Ring& ring);
  bool run(const std::vector<std::uint32_t>& stream);  // of a stream without a ring, from its start
  bool run_aql(const Ring& ring);                      // of packets of 64 bytes that carry PM4
  // A buffer of packets, as INDIRECT_BUFFER runs it.
  bool indirect(std::uint64_t va, std::uint32_t n);
  bool may_use_registers = true;  // WAIT_REG_MEM; user queues and AMDGPU_CS may not
  bool is_of_user = false;        // INDIRECT_BUFFER wants INHERIT_VMID
  void finish();                  // dispatches that nothing waited for
  std::unordered_map<std::uint32_t, std::uint32_t> regs;
  std::vector<Counts> dispatches;
  struct {
    std::uint64_t packets = 0, dwords = 0, dispatches = 0, flushes = 0, acquires = 0, releases = 0;
  } seen;

 private:
  std::uint32_t read32(std::uint64_t va) const;
  std::size_t packet(const std::vector<std::uint32_t>& at, std::size_t k);  // dwords taken, 0: waits
  void dispatch(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t initiator);
  void flush();
  std::uint32_t reg(std::uint32_t r, const char* name);
  std::uint64_t clock() const { return seen.packets + 1; }
  void fence(std::uint64_t va, std::uint64_t value);

  Machine& m_;
  Order order_;
  std::function<void(const std::string&)> lint_;
  std::vector<Dispatch> held_;
  std::uint32_t groups_ = 0;
  bool acquired_ = false, flushed_ = true;
  std::uint64_t resume_ = 0;                                 // into an indirect buffer that waited
  std::unordered_map<std::uint64_t, std::uint64_t> fences_;  // last values, by address
};

}  // namespace amd_sim
