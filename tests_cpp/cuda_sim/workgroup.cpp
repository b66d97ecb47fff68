#include "cuda_sim/workgroup.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cuda_sim {
namespace {

namespace context = boost::context;

constexpr std::uint32_t kLanes = 32, kMostThreads = 1024, kMostMasks = 8;
constexpr std::uint32_t kMostRounds = 1000;  // in which all threads do nothing but ask
constexpr std::size_t kStackBytes = 256u << 10;
// Of copies one in so many ends so many rounds later; the others at the end of the round.
constexpr std::uint32_t kLateOne = 8, kLateRounds = 12;

enum class State : std::uint8_t { kReady, kMeets, kSyncs, kAsks, kEnded };

struct Thread {
  State state = State::kEnded;
  Index index;
  context::fiber fiber;   // of the thread, while another runs
  context::fiber caller;  // of the scheduler, while this one runs
};

// Lanes of a warp that exchange words under one mask. A lane can be one meeting ahead of another, not two.
struct Meeting {
  std::uint32_t mask = 0, arrived = 0, half = 0;
  Words words[2][kLanes];
};

struct Workgroup {
  const Kernel* kernel = nullptr;
  const void* args = nullptr;
  std::vector<std::unique_ptr<Thread>> threads;  // as many as any launch had; their fibers live on
  std::uint32_t n = 0, alive = 0, syncing = 0, current = 0;
  // Nothing is allocated by a launch that is like one before, since tests count allocations.
  std::vector<std::uint32_t> warps, lanes;     // in the order in which they run
  std::vector<std::vector<Meeting>> meetings;  // of each warp
  std::map<std::size_t, std::unique_ptr<std::byte[]>> shared;
  struct UnderWay {
    Copy copy;
    void (*end)(const Copy& copy);
    std::uint32_t rounds;
  };
  std::vector<UnderWay> copies;
  std::mt19937 random;  // the order of warps and lanes, and how late copies are

  void end_copies() {
    std::erase_if(copies, [](UnderWay& one) {
      if (one.rounds-- > 0) return false;
      one.end(one.copy);
      return true;
    });
  }
  void wait(State state) {
    Thread& self = *threads[current];
    self.state = state;
    self.caller = std::move(self.caller).resume();
  }
  void release_all() {
    syncing = 0;
    for (std::uint32_t i = 0; i < n; ++i)
      if (threads[i]->state == State::kSyncs) threads[i]->state = State::kReady;
  }
  void live(Thread& self) {
    for (;;) {
      kernel->call(args);
      self.state = State::kEnded;
      --alive;
      if (alive > 0 && syncing == alive) release_all();
      self.caller = std::move(self.caller).resume();
    }
  }
  void resume(std::uint32_t i) {
    current = i;
    here.thread = threads[i]->index;
    threads[i]->fiber = std::move(threads[i]->fiber).resume();
  }
  void grow(std::uint32_t wanted) {
    while (threads.size() < wanted) {
      Thread& thread = *threads.emplace_back(std::make_unique<Thread>());
      thread.fiber = context::fiber(std::allocator_arg, context::protected_fixedsize_stack(kStackBytes),
                                    [this, &thread](context::fiber&& caller) {
                                      thread.caller = std::move(caller);
                                      live(thread);
                                      return std::move(thread.caller);
                                    });
    }
  }
  [[noreturn]] void stuck() const {
    std::string where;
    for (std::uint32_t w = 0; w * kLanes < n; ++w)
      for (const auto& [state, name] :
           {std::pair{State::kMeets, "wait for lanes of their mask"}, std::pair{State::kSyncs, "wait for all threads"},
            std::pair{State::kAsks, "wait for a barrier in memory"}}) {
        const auto count = std::count_if(threads.begin() + w * kLanes, threads.begin() + std::min(n, (w + 1) * kLanes),
                                         [state = state](const auto& t) { return t->state == state; });
        if (count > 0) where += "\n  warp " + std::to_string(w) + ": " + std::to_string(count) + " lanes " + name;
      }
    stop(("its threads wait for each other:" + where).c_str());
  }
};
Workgroup group;

}  // namespace

Place here;

void stop(const char* what) {
  std::fprintf(stderr, "cuda_sim: %s, workgroup %u, %u, %u, thread %u: %s\n",
               group.kernel != nullptr ? group.kernel->name : "no kernel", here.block.x, here.block.y, here.block.z,
               here.thread.x, what);
  std::abort();
}

void yield() {
  group.wait(State::kAsks);
}

void copy_later(const Copy& copy, void (*end)(const Copy& copy)) {
  group.copies.push_back({copy, end, group.random() % kLateOne == 0 ? kLateRounds : 0});
}

void sync_threads() {
  if (++group.syncing == group.alive)
    group.release_all();
  else
    group.wait(State::kSyncs);
}

const Words* exchange(std::uint32_t mask, const Words& own) {
  const std::uint32_t warp = here.thread.x / kLanes, lane = here.thread.x % kLanes;
  if ((mask >> lane & 1) == 0) stop("a lane calls for a mask that it is not in");
  auto& meetings = group.meetings[warp];
  auto it = std::ranges::find(meetings, mask, &Meeting::mask);
  if (it == meetings.end()) {
    if (meetings.size() == kMostMasks) stop("a warp that meets under more masks than were thought of");
    it = meetings.insert(it, Meeting{mask, 0, 0, {}});
  }
  Meeting& meeting = *it;
  const std::uint32_t half = meeting.half;
  meeting.words[half][lane] = own;
  meeting.arrived |= 1u << lane;
  if (meeting.arrived != mask) {
    group.wait(State::kMeets);
    return meeting.words[half];
  }
  meeting.arrived = 0;
  meeting.half = 1 - half;
  for (std::uint32_t other = 0; other < kLanes; ++other)
    if (other != lane && (mask >> other & 1) != 0) group.threads[warp * kLanes + other]->state = State::kReady;
  return meeting.words[half];
}

void run_grid(const Kernel& kernel, const void* args, Index grid, Index block, std::size_t shared_bytes) {
  // The order in which warps and lanes run is the seed's: a missing barrier shows in one or another.
  static const unsigned seed = [] {
    const char* text = std::getenv("ZRT_CUDA_SIM_SEED");
    return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 0u;
  }();
  group.kernel = &kernel;
  group.args = args;
  if (block.x == 0 || block.x > kMostThreads || block.y != 1 || block.z != 1) stop("a workgroup of that size");
  group.n = block.x;
  group.grow(group.n);
  const std::uint32_t n_warps = (group.n + kLanes - 1) / kLanes;
  auto &warps = group.warps, &lanes = group.lanes;
  warps.resize(n_warps);
  lanes.resize(kLanes);
  std::iota(warps.begin(), warps.end(), 0u);
  std::iota(lanes.begin(), lanes.end(), 0u);
  auto& random = group.random;
  random.seed(seed);
  group.copies.reserve(1024);
  while (group.meetings.size() < n_warps) group.meetings.emplace_back().reserve(kMostMasks);
  // An allocation of its own a size, so that a tool that watches memory sees what lies past its end.
  auto& shared = group.shared[shared_bytes];
  if (shared == nullptr) shared.reset(new std::byte[shared_bytes]);
  here = {{}, {}, block, grid, shared.get()};
  Index at;
  for (at.z = 0; at.z < grid.z; ++at.z)
    for (at.y = 0; at.y < grid.y; ++at.y)
      for (at.x = 0; at.x < grid.x; ++at.x) {
        here.block = at;
        std::fill_n(shared.get(), shared_bytes, std::byte{0xFF});
        if (seed != 0) {
          std::ranges::shuffle(warps, random);
          std::ranges::shuffle(lanes, random);
        }
        group.alive = group.n;
        group.syncing = 0;
        for (auto& meetings : group.meetings) meetings.clear();
        for (std::uint32_t i = 0; i < group.n; ++i) {
          group.threads[i]->state = State::kReady;
          group.threads[i]->index = {i, 0, 0};
        }
        for (std::uint32_t asked = 0; group.alive > 0;) {
          for (std::uint32_t i = 0; i < group.n; ++i)
            if (group.threads[i]->state == State::kAsks) group.threads[i]->state = State::kReady;
          bool has_moved = false, has_asked = false;
          for (const std::uint32_t warp : warps)
            for (bool again = true; again;) {
              again = false;
              for (const std::uint32_t lane : lanes) {
                const std::uint32_t i = warp * kLanes + lane;
                if (i >= group.n || group.threads[i]->state != State::kReady) continue;
                group.resume(i);
                const bool is_asking = group.threads[i]->state == State::kAsks;
                has_asked |= is_asking;
                has_moved |= !is_asking;
                again = true;
              }
            }
          has_moved |= !group.copies.empty();
          group.end_copies();
          asked = has_moved ? 0 : asked + 1;
          if (!has_moved && (!has_asked || asked == kMostRounds)) group.stuck();
        }
        if (!group.copies.empty()) stop("a workgroup ends while copies to its shared memory are under way");
      }
}

}  // namespace cuda_sim
