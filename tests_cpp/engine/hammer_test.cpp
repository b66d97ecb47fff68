// Eight client threads on one engine for a few seconds; what ThreadSanitizer looks at.
#include "load.h"

namespace zinc_rt {
namespace {

TEST(Hammer, EightThreadsOnOneEngine) {
  ZRT_NEED_FIXTURES();
  auto options = small_options();
  options.max_slots = 4;
  options.kv_pages = 24;
  options.chunk_cap = 32;
  const auto engine = start_engine("llama_spm-f32", options);
  std::atomic<bool> stop = false;
  Load load;
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < 8; ++i) {
    const std::size_t index = i % 4;
    auto tenant = engine.tenant("tenant " + std::to_string(index), load_quota(index));
    clients.emplace_back([&, i, index, tenant] { run_client(engine, i, tenant, index, stop, load); });
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
  stop = true;
  for (auto& client : clients) client.join();
  EXPECT_TRUE(engine.core->drain(10'000));
  EXPECT_EQ(load.wrong, 0u);
  EXPECT_GT(load.length, 20u);
  std::cout << load.n_done() << " requests, " << load.tokens << " tokens" << std::endl;
  expect_all_free(engine);
}

}  // namespace
}  // namespace zinc_rt
