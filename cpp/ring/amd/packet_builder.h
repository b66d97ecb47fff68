// PacketBuilder writes PM4 packets into a list. Registers keep their values from one dispatch to the next. So a
// register that already has the wanted value is not written again, and a dispatch takes at most 22 dwords.
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <bitset>
#include <initializer_list>
#include <span>
#include <vector>

#include "ring/amd/code_object.h"
#include "ring/amd/device.h"
#include "ring/amd/pm4.h"

namespace zinc_rt::ring {

class PacketBuilder {
 public:
  // Forgets the packets, and the register values too, because other queues may have written registers meanwhile.
  void clear();
  std::span<const std::uint32_t> dwords() const { return dwords_; }

  // Waits until all earlier dispatches have ended, and invalidates caches, so that later dispatches see what earlier
  // ones have written.
  void barrier(std::uint32_t gcr = pm4::kBetweenDispatches);
  // Appends a packet that makes the host's writes to device memory (through the PCIe BAR) visible to the GPU. The packet
  // has kFlushDwords dwords, whatever `way` is.
  static constexpr std::uint32_t kFlushDwords = 7;
  void flush_host_writes(HostWrites way);
  // Runs groups[0] x groups[1] x groups[2] workgroups of `threads` threads. The kernel's arguments are at the address
  // `arguments`.
  void dispatch(const KernelCode& kernel, std::uint64_t code, std::uint64_t arguments, std::uint32_t threads,
                const std::uint32_t (&groups)[3]);
  // Sets the two registers that hold a dispatch's addresses: of the code's entry and of the arguments.
  void use(std::uint64_t entry, std::uint64_t arguments);
  // Writes `value` to `at` once all earlier work has ended and the host can see its results. `data` tells what is
  // written: the whole value, its low half, or the device's clock instead of the value.
  void release(std::uint64_t at, std::uint64_t value, std::uint32_t data = pm4::kData64);
  // Writes words to `at` at once, without waiting for running work.
  void write(std::uint64_t at, std::span<const std::uint32_t> words);
  // Copies 8 or 4 bytes to `to`. `source` tells from where: from memory at `from`, the number `from` itself, or the
  // clock.
  void copy(std::uint64_t to, std::uint64_t from, std::uint32_t source, std::uint32_t count = pm4::kCount64);
  // Waits until the word at `at` compares with `value` in the way that `function` names.
  void wait_memory(std::uint64_t at, std::uint32_t function, std::uint32_t value);
  // Runs the `n_dwords` of packets at `at`. `flags` go into the packet's last dword.
  void indirect(std::uint64_t at, std::uint32_t n_dwords, std::uint32_t flags = pm4::kIndirectValid);
  // Does what indirect() does, as a packet of an AQL queue.
  void aql_indirect(std::uint64_t at, std::uint32_t n_dwords);
  void nop(std::uint32_t n_dwords);  // appends n_dwords packets of one dword each
  // Appends one packet of n_dwords dwords.
  void long_nop(std::uint32_t n_dwords);
  void append(std::span<const std::uint32_t> packets);  // appends the packets unchanged
  // Appends NOPs until the number of dwords is a multiple of `multiple`.
  void pad(std::uint32_t multiple);

 private:
  void packet(pm4::Opcode opcode, std::initializer_list<std::uint32_t> body);
  void set(pm4::Register first, std::initializer_list<std::uint32_t> values);

  std::vector<std::uint32_t> dwords_;
  // The values of the registers after the packets so far; known_ says which of them were set.
  std::array<std::uint32_t, pm4::kShEnd - pm4::kShBase> values_{};
  std::bitset<pm4::kShEnd - pm4::kShBase> known_;
};

}  // namespace zinc_rt::ring
