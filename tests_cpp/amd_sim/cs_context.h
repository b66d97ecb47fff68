// A context of AMDGPU_CS: buffers of packets of one process, which the driver runs one after another.
#pragma once

#include <condition_variable>

#include "amd_sim/card.h"

namespace amd_sim {

// A buffer object of a file of the render node.
struct DrmObject {
  std::uint64_t bytes, offset;
  std::uint32_t domain, flags;
  std::uint64_t va = 0;  // 0: it has none
  void* host = nullptr;
};
using DrmObjects = std::map<std::uint32_t, DrmObject>;  // by handle

class CsContext {
 public:
  struct Job {
    std::uint64_t va, sequence;
    std::uint32_t n_dwords;
    std::set<std::uint32_t> listed;  // objects
  };
  CsContext(Machine& machine, const DrmObjects& objects, std::function<void(const Fault&)> on_fault);
  ~CsContext();
  // The job's number.
  std::uint64_t add(Job job);
  // Waits for it, for two seconds.
  bool is_done(std::uint64_t sequence);
  std::atomic<bool> is_lost = false;

 private:
  void work();
  bool run(const Job& job);

  Machine& machine_;
  const DrmObjects& objects_;
  std::function<void(const Fault&)> on_fault_;
  std::mutex jobs_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::uint64_t last_ = 0, done_ = 0;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace amd_sim
