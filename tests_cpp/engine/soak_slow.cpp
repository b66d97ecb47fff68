// Random load from 64 sessions of 8 tenants for ZINC_RT_SOAK_SECONDS (20), with cancels, readers that leave and slow
// sinks. Nothing may leak, hang or get lost: ZINC_RT_SOAK_SECONDS=1800 engine_slow --gtest_filter='Soak.*'
#include <cstdlib>

#include "load.h"

namespace zinc_rt {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(Soak, RandomLoadLeavesNothingBehind) {
  const char* text = std::getenv("ZINC_RT_SOAK_SECONDS");
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 20;
  ASSERT_GT(seconds, 0);
  auto options = small_options();
  options.max_slots = 8;
  options.kv_pages = 48;
  options.state_checkpoints = 16;
  const auto engine = start_engine("qwen35-f32", options);
  Clients clients(engine, 64, 8);
  const Load& load = clients.load();
  const auto begin = Clock::now();
  const double warm_up = std::min(60.0, seconds / 2);
  double warm_mib = 0, next_line = 0;
  std::uint64_t last_done = 0;
  auto last_progress = begin;
  while (seconds_since(begin) < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double now = seconds_since(begin);
    if (now >= warm_up && warm_mib == 0) warm_mib = resident_mib();
    if (load.n_done() != last_done) last_done = load.n_done(), last_progress = Clock::now();
    if (seconds_since(last_progress) > 60) {
      ADD_FAILURE() << "no request ended for 60 s: " << to_json(engine.core->stats());
      std::_Exit(1);  // its clients would never be joined
    }
    if (now < next_line) continue;
    next_line = now + 10;
    std::cout << static_cast<int>(now) << " s: " << resident_mib() << " MiB; " << load.length << " length, "
              << load.stop << " stop, " << load.cancelled << " cancelled, " << load.deadline << " deadline, "
              << load.too_slow << " too slow, " << load.dropped << " left, " << load.refused << " refused, "
              << load.exhausted << " out of pages, " << load.tokens << " tokens; " << engine.stat("preemptions")
              << " preemptions, " << engine.stat("page_evictions") << " evictions" << std::endl;
  }
  clients.stop(60'000);
  EXPECT_GT(load.cancelled, 0u);
  EXPECT_LT(resident_mib() - warm_mib, 8) << "MiB more than after " << warm_up << " s, " << warm_mib << " then";
  for (auto& tenant : clients.tenants()) {
    EXPECT_TRUE(tenant.flush_prefix_cache());
    EXPECT_EQ(tenant.ledger().kv_pages_now + tenant.ledger().slots_now + tenant.ledger().waiting_now, 0u);
  }
  EXPECT_EQ(engine.stat("pages_cached"), 0u);
}

}  // namespace
}  // namespace zinc_rt
