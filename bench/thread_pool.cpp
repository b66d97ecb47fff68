// What a parallel_for costs: bench_thread_pool [seconds a case]. Ranges of empty calls, and of calls of 5 us (16 a
// thread, about a decode step's), with idle and with busy processors, threads left to the kernel or pinned to a
// processor each. A busy processor has a process that counts. With one on each, half of the rate is the fair share.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <set>
#include <vector>

#include "base/processors.h"
#include "base/thread_pool.h"

namespace {

using namespace zinc_rt;
using Clock = std::chrono::steady_clock;

double micros_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void count_to(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) asm volatile("" : "+r"(i));
}

// Turns of count_to in 5 us of an idle processor.
std::uint64_t work_turns() {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    count_to(100'000);
    least = std::min(least, micros_since(begin));
  }
  return static_cast<std::uint64_t>(5 * 100'000 / least);
}

class BusyProcesses {
 public:
  explicit BusyProcesses(int n) {
    for (int i = 0; i < n; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) count_to(1 << 20);
      }
      if (child > 0) children_.push_back(child);
    }
    usleep(200'000);  // until the kernel has spread them
  }
  ~BusyProcesses() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

 private:
  std::vector<pid_t> children_;
};

void restrict_to(const std::vector<int>& ids) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int id : ids) CPU_SET(static_cast<std::size_t>(id), &mask);
  sched_setaffinity(0, sizeof(mask), &mask);
}

// Each thread of the pool takes one call, as none returns before all have come.
void pin(ThreadPool& pool, const std::vector<int>& ids) {
  std::atomic<int> n_here{0};
  pool.parallel_for(static_cast<std::uint64_t>(pool.n_threads()), [&](std::uint64_t, int worker) {
    restrict_to({ids[static_cast<std::size_t>(worker)]});
    for (++n_here; n_here < pool.n_threads();) sched_yield();
  });
}

// Of all threads of this process.
double processor_micros() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

struct Timing {
  double median_us = 0, mean_us = 0;
  double processor_us = 0;  // a thread's
};
Timing time_ranges(ThreadPool& pool, std::uint64_t n, std::uint64_t turns, double seconds) {
  std::vector<double> micros;
  const double processor_begin = processor_micros();
  for (const auto begin = Clock::now(); micros_since(begin) < seconds * 1e6;) {
    const auto start = Clock::now();
    pool.parallel_for(n, [turns](std::uint64_t, int) { count_to(turns); });
    micros.push_back(micros_since(start));
  }
  const auto count = static_cast<double>(micros.size());
  const double processor_us = (processor_micros() - processor_begin) / count / pool.n_threads();
  double sum = 0;
  for (const double us : micros) sum += us;
  std::ranges::nth_element(micros, micros.begin() + static_cast<std::ptrdiff_t>(micros.size() / 2));
  return {micros[micros.size() / 2], sum / count, processor_us};
}

void run(int n_threads, int n_busy, bool pinned, std::uint64_t turns, double seconds, const Processors& processors) {
  const BusyProcesses busy(n_busy);
  ThreadPool pool(n_threads);
  if (pinned) pin(pool, processors.ids);
  const auto n = static_cast<std::uint64_t>(n_threads);
  const auto empty = time_ranges(pool, n, 0, seconds);
  const auto work = time_ranges(pool, 16 * n, turns, seconds);
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n", n_threads, n_busy,
             pinned ? "pinned" : "free", empty.median_us, empty.mean_us, work.median_us, work.mean_us,
             work.processor_us, 80 / work.mean_us);
  if (pinned) restrict_to(processors.ids);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1;
  const auto processors = find_processors();
  const auto turns = work_turns();
  fmt::print("{}\n\n", processors.explain());
  fmt::print(
      "| threads | busy processes | threads are | empty, median us | mean us | 80 us a thread, median us | mean us | "
      "processor us a thread | rate |\n|---|---|---|---|---|---|---|---|---|\n");
  const int all = static_cast<int>(processors.ids.size());
  for (const int n_threads : std::set{2, processors.n_threads()})
    for (const int n_busy : std::set{0, 1, all})
      for (const bool pinned : {false, true})
        if (!pinned || n_threads <= all) run(n_threads, n_busy, pinned, turns, seconds, processors);
}
