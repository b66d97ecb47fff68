#include "amd_sim/cs_context.h"

#include <cstdio>

namespace amd_sim {

CsContext::CsContext(Machine& machine, const DrmObjects& objects, std::function<void(const Fault&)> on_fault)
    : machine_(machine), objects_(objects), on_fault_(std::move(on_fault)), thread_([this] { work(); }) {}

CsContext::~CsContext() {
  {
    const std::lock_guard lock(jobs_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t CsContext::add(Job job) {
  const std::lock_guard lock(jobs_);
  job.sequence = ++last_;
  queue_.push_back(std::move(job));
  changed_.notify_all();
  return last_;
}

bool CsContext::is_done(std::uint64_t sequence) {
  std::unique_lock lock(jobs_);
  return changed_.wait_for(lock, std::chrono::seconds(2), [&] { return done_ >= sequence || is_lost; });
}

void CsContext::work() {
  std::unique_lock lock(jobs_);
  while (true) {
    changed_.wait(lock, [&] { return end_ || !queue_.empty(); });
    if (end_) return;
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    if (is_dead("cs")) continue;
    lock.unlock();
    const bool is_well = run(job);
    lock.lock();
    is_lost = !is_well;
    done_ = job.sequence;
    changed_.notify_all();
    if (!is_well) return;
  }
}

// Objects that are not in the list may have been moved away.
bool CsContext::run(const Job& job) {
  const std::lock_guard lock(Card::get().mutex);
  for (const auto& [handle, object] : objects_) {
    const bool is_there = object.va != 0 && machine_.memory.find(object.va) != nullptr;
    if (is_there && !job.listed.contains(handle)) machine_.forget(object.va, object.bytes);
  }
  bool is_well = true;
  try {
    // Registers do not last from one buffer to the next: those of other processes come between.
    const auto processor = make_processor(machine_);
    processor->may_use_registers = false;
    if (!processor->indirect(job.va, job.n_dwords)) throw Fault(kHang, "WAIT_REG_MEM waits for what nothing writes");
    processor->finish();
    print_counts(*processor, machine_);
  } catch (const Fault& fault) {
    std::fprintf(stderr, "amd_sim: %s\n", fault.what());
    on_fault_(fault);
    is_well = false;
  }
  for (const auto& [handle, object] : objects_)
    if (object.va != 0 && machine_.memory.find(object.va) == nullptr)
      machine_.memory.add({"object " + std::to_string(handle), object.va, object.bytes,
                           static_cast<std::uint8_t*>(object.host), true, true});
  return is_well;
}

}  // namespace amd_sim
