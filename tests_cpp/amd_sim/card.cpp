#include "amd_sim/card.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace amd_sim {
namespace {

constexpr std::uint64_t kPage = 4096, kOffsetStep = 0x10000;
constexpr std::uint8_t kGarbage = 0xCD;

}  // namespace

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

bool is_dead(const std::string& kind) {
  return ("," + variable("ZRT_AMD_SIM_DEAD", "") + ",").find("," + kind + ",") != std::string::npos;
}

Card& Card::get() {
  static Card* const kCard = new Card;  // lives as long as the queues' threads
  return *kCard;
}

Card::Card()
    : memory_(memfd_create("drm", 0)),
      arch_(variable("ZRT_AMD_SIM_TARGET", "gfx1201")),
      vram_bytes_(std::strtoull(variable("ZRT_AMD_SIM_VRAM", "4096").c_str(), nullptr, 10) << 20) {
  if (ftruncate(memory_, off_t{1} << 42) != 0) std::perror("amd_sim: the memory's file");
}

std::string Card::target_version() const {
  return std::to_string(std::atoi(arch_.substr(3, 2).c_str()) * 10000 + (arch_[5] - '0') * 100 + (arch_[6] - '0'));
}

std::uint32_t Card::engine_version() const {
  return static_cast<std::uint32_t>(std::atoi(arch_.substr(3, 2).c_str()) << 16 | (arch_[5] - '0') << 8 |
                                    (arch_[6] - '0'));
}

std::optional<std::uint64_t> Card::take(std::uint64_t bytes, bool is_vram) {
  if (is_vram && bytes > vram_bytes_ - vram_used_) return std::nullopt;
  if (!is_vram && bytes > kGttBytes) return std::nullopt;
  const std::uint64_t offset = next_offset_;
  next_offset_ += (bytes + kOffsetStep - 1) / kOffsetStep * kOffsetStep;
  // What was there before: nobody may take it for zeros.
  const std::string garbage(kPage, static_cast<char>(kGarbage));
  for (const std::uint64_t at : {offset, offset + bytes - kPage})
    if (pwrite(memory_, garbage.data(), garbage.size(), static_cast<off_t>(at)) < 0) return std::nullopt;
  if (is_vram) vram_used_ += bytes;
  return offset;
}

void Card::give_back(std::uint64_t offset, std::uint64_t bytes, bool is_vram) {
  fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (is_vram) vram_used_ -= bytes;
}

void* Card::map(std::uint64_t offset, std::uint64_t bytes) const {
  void* host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
  return host == MAP_FAILED ? nullptr : host;
}

std::unique_ptr<Machine> Card::make_machine() const {
  auto machine = std::make_unique<Machine>();
  machine->arch = arch_;
  machine->memory.races = variable("ZRT_AMD_SIM_RACES", "0") == "1";
  machine->most_groups =
      static_cast<std::uint32_t>(std::strtoul(variable("ZRT_AMD_SIM_GROUPS", "0").c_str(), nullptr, 10));
  if (const std::string seed = variable("ZRT_AMD_SIM_SEED", ""); !seed.empty())
    machine->shuffle = true, machine->seed = std::strtoull(seed.c_str(), nullptr, 10);
  return machine;
}

std::unique_ptr<CommandProcessor> make_processor(Machine& machine) {
  const auto lint = [](const std::string& what) { throw Fault(kHazard, what); };
  const auto order = variable("ZRT_AMD_SIM_ORDER", "") == "reverse" ? Order::reverse : Order::fifo;
  return std::make_unique<CommandProcessor>(machine, order, lint);
}

void print_counts(const CommandProcessor& p, const Machine& machine) {
  if (variable("ZRT_AMD_SIM_STATS", "") != "1") return;
  const Counts& c = machine.counts;
  std::fprintf(stderr, "amd_sim: %llu dwords, %llu dispatches, %llu barriers; %llu wave instructions\n",
               static_cast<unsigned long long>(p.seen.dwords), static_cast<unsigned long long>(p.seen.dispatches),
               static_cast<unsigned long long>(p.seen.flushes), static_cast<unsigned long long>(c.total()));
  for (const auto& [name, n] : c.approximate)
    std::fprintf(stderr, "amd_sim: approximate: %s %llu\n", name.c_str(), static_cast<unsigned long long>(n));
}

HardwareQueue::HardwareQueue(Machine& machine, Setup setup)
    : machine_(machine),
      setup_(std::move(setup)),
      is_aql_(setup_.kind == "aql"),
      rung_(is_aql_ ? ~std::uint64_t{0} : 0),
      processor_(make_processor(machine)) {
  processor_->is_of_user = setup_.kind == "userq";
  setup_.doorbell->store(rung_);
  if (!is_dead(setup_.kind)) thread_ = std::thread([this] { watch(); });
}

HardwareQueue::~HardwareQueue() {
  end_ = true;
  if (thread_.joinable()) thread_.join();
  print_counts(*processor_, machine_);
}

std::uint64_t HardwareQueue::wptr() const {
  std::uint8_t* at = machine_.memory.at(setup_.ring.wptr, sizeof(std::uint64_t), false, "wptr", 0);
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_acquire);
}

void HardwareQueue::watch() {
  while (!end_) {
    const std::uint64_t rung = setup_.doorbell->load(std::memory_order_acquire);
    if (rung == rung_) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      continue;
    }
    const std::lock_guard lock(Card::get().mutex);
    try {
      if (setup_.before) setup_.before();
      const std::uint64_t end = rung + (is_aql_ ? 1 : 0);
      if (wptr() < end)
        throw Fault(kMalformed, "the doorbell was rung with " + std::to_string(rung) + " before wptr, which is " +
                                    std::to_string(wptr()) + " in memory");
      if (is_aql_ ? !processor_->run_aql(setup_.ring) : !processor_->run(setup_.ring))
        throw Fault(kHang, "WAIT_REG_MEM waits for what nothing writes");
      processor_->finish();
    } catch (const Fault& fault) {
      std::fprintf(stderr, "amd_sim: %s\n", fault.what());
      setup_.on_fault(fault);
      return;
    }
    rung_ = rung;
  }
}

}  // namespace amd_sim
