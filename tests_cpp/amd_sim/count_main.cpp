// amd_sim_count LOG [GROUPS]: executes the last submission of a log of packets (ZINC_RT_PACKET_LOG) in the emulator, and
// prints what each dispatch did as a JSON object a line. Of a dispatch of more workgroups than GROUPS so many run, spread
// over it, and its counts are scaled. bench/amd_computed.py makes computed times of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "amd_sim/command_processor.h"
#include "base/mapped_file.h"
#include "kernels/rdna/op_args.h"
#include "kernels/rdna/product_args.h"
#include "ring/amd/packet_log.h"
#include "ring/amd/pm4.h"

namespace amd_sim {
namespace {

using zinc_rt::ring::LogRecord;
namespace pm4 = zinc_rt::ring::pm4;

// Cycles that an instruction keeps a SIMD from issuing another one, but for WMMA, which the emulator counts.
struct CostRow {
  std::string_view prefix;
  std::uint64_t cycles;
};
constexpr CostRow kCosts[] = {{"v_wmma", 0},    {"v_swmma", 0},   {"v_exp_", 4},    {"v_log_", 4}, {"v_rcp_", 4},
                              {"v_rsq_", 4},    {"v_sqrt_", 4},   {"v_sin_", 4},    {"v_cos_", 4}, {"v_mul_lo_u32", 4},
                              {"v_mul_hi_", 4}, {"v_mad_u64", 4}, {"v_mad_i64", 4}, {"v_", 1}};

std::uint64_t issue_cycles(const Counts& counts) {
  std::uint64_t cycles = 0;
  for (const auto& [name, n] : counts.names) {
    const auto* row = std::ranges::find_if(kCosts, [&](const CostRow& c) { return name.starts_with(c.prefix); });
    if (row != std::end(kCosts)) cycles += n * row->cycles;
  }
  return cycles;
}

// Columns and rows of the matrices of a product, of how many experts at most, and columns of the product; 0: it is none.
struct Weights {
  std::uint64_t k = 0, rows = 0, matrices = 0, n = 0;
};
Weights weights_of(const std::string& kernel, const std::uint8_t* arguments) {
  if (!kernel.starts_with("product_")) return {};
  zinc_rt::rdna::ProductArgs args;
  std::memcpy(&args, arguments, sizeof(args));
  Weights weights{args.k, 0, args.choices == 0 ? 1u : std::min(args.n, args.n_experts), args.n};
  for (std::uint32_t i = 0; i < args.n_parts; ++i) weights.rows += args.rows[i];
  return weights;
}

// What a dispatch's registers say of it, and whether a barrier follows.
struct Seen {
  std::uint64_t code = 0, arguments = 0, groups = 0;
  bool barrier = false;
};
std::vector<Seen> dispatches_of(const std::vector<std::uint32_t>& packets) {
  std::vector<Seen> all;
  std::array<std::uint32_t, pm4::kShEnd - pm4::kShBase + 1> registers{};
  const auto address = [&](std::uint32_t reg) {
    return registers[reg - pm4::kShBase] | std::uint64_t{registers[reg - pm4::kShBase + 1]} << 32;
  };
  for (std::size_t at = 0; at < packets.size();) {
    const std::uint32_t header = packets[at], n = header == pm4::kOneDwordNop ? 0 : (header >> 16 & 0x3FFF) + 1;
    const std::uint32_t* body = &packets[at + 1];
    switch (header >> 8 & 255) {
      case pm4::kSetShReg: std::copy_n(body + 1, n - 1, registers.begin() + body[0]); break;
      case pm4::kEventWrite:
        if (!all.empty()) all.back().barrier = true;
        break;
      case pm4::kDispatchDirect:
        all.push_back(
            {address(pm4::kPgmLo) << 8, address(pm4::kUserData0), std::uint64_t{body[0]} * body[1] * body[2], false});
        break;
      default: break;
    }
    at += 1 + n;
  }
  return all;
}

int count(const char* path, std::uint32_t most_groups) {
  const auto file = zinc_rt::MappedFile::open(path);
  if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
  const auto records = zinc_rt::ring::read_packet_log(file->bytes());
  if (!records) return std::fprintf(stderr, "%s\n", records.error().message.c_str()), 1;
  Machine machine;
  machine.profile = machine.lines = true;
  machine.most_groups = most_groups;
  std::map<std::uint64_t, std::vector<std::uint8_t>> regions;
  std::map<std::uint64_t, std::string> kernels;
  std::vector<std::uint32_t> packets;
  const std::size_t last =
      records->size() - 1 -
      static_cast<std::size_t>(
          std::ranges::find(records->rbegin(), records->rend(), LogRecord::kRun, &LogRecord::kind) - records->rbegin());
  // Memory as it was before the last submission: what submissions before it wrote comes with the pages that changed, but
  // for what a submission writes and nobody changes afterwards. Numbers of instructions hardly depend on that.
  for (std::size_t i = 0; i <= last && i < records->size(); ++i) {
    const LogRecord& record = (*records)[i];
    if (record.kind == LogRecord::kStart) machine.arch = to_string(static_cast<zinc_rt::kernel::Target>(record.value));
    if (record.kind == LogRecord::kKernel)
      kernels[record.va] = std::string(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
    if (record.kind == LogRecord::kRegion) {
      auto& memory = regions[record.va];
      memory.resize(record.value);
      machine.memory.add({"region", record.va, record.value, memory.data(), true, true});
    }
    if (record.kind == LogRecord::kGone) machine.forget(record.va, regions[record.va].size()), regions.erase(record.va);
    if (record.kind == LogRecord::kPages) {
      constexpr std::size_t kEntry = sizeof(std::uint64_t) + zinc_rt::ring::kLogPage;
      for (std::size_t at = 0; at + kEntry <= record.bytes.size(); at += kEntry) {
        std::uint64_t page;
        std::memcpy(&page, record.bytes.data() + at, sizeof(page));
        std::memcpy(regions.at(record.va).data() + page * zinc_rt::ring::kLogPage,
                    record.bytes.data() + at + sizeof(page), zinc_rt::ring::kLogPage);
      }
    }
    if (i == last && record.kind == LogRecord::kRun) packets = zinc_rt::ring::packets_of(record);
  }
  CommandProcessor processor(machine, Order::fifo, [](const std::string&) {});
  try {
    processor.run(packets);
    processor.finish();
  } catch (const Fault& fault) {
    return std::fprintf(stderr, "%s\n", fault.what()), 1;
  }
  const auto seen = dispatches_of(packets);
  for (std::size_t i = 0; i < seen.size() && i < processor.dispatches.size(); ++i) {
    const Counts& c = processor.dispatches[i];
    const auto* arguments = machine.memory.at(seen[i].arguments, sizeof(zinc_rt::rdna::OpArgs), false, "arguments", 0);
    const std::string& kernel = kernels[seen[i].code];
    const Weights weights = weights_of(kernel, arguments);
    zinc_rt::rdna::OpArgs args;
    std::memcpy(&args, arguments, sizeof(args));
    fmt::print(
        "{{\"kernel\": \"{}\", \"groups\": {}, \"waves\": {}, \"instructions\": {}, \"issue_cycles\": {}, "
        "\"wmma_cycles\": {}, \"load_bytes\": {}, \"store_bytes\": {}, \"smem_bytes\": {}, \"lines\": {}, "
        "\"own_lines\": {}, \"shared_lines\": {}, \"lds_cycles\": {}, \"barrier\": {}, \"k\": {}, \"rows\": {}, "
        "\"matrices\": {}, \"n\": {}, \"symbols\": [{}]}}\n",
        kernel, seen[i].groups, c.waves, c.total(), issue_cycles(c), c.wmma_cycles, c.load_bytes, c.store_bytes,
        c.smem_bytes, c.lines, c.own_lines, c.shared_lines, c.lds_cycles, seen[i].barrier, weights.k, weights.rows,
        weights.matrices, weights.n, fmt::join(args.symbols, ", "));
  }
  return 0;
}

}  // namespace
}  // namespace amd_sim

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "amd_sim_count LOG [GROUPS]\n"), 2;
  return amd_sim::count(argv[1], argc < 3 ? 0 : static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)));
}
