// Eight client threads on one engine for a few seconds; what ThreadSanitizer looks at.
#include "load.h"

namespace zinc_rt {
namespace {

void hammer(const EngineOptions& engine_options) {
  auto options = small_options();
  options.max_slots = 4;
  options.kv_pages = 24;
  options.chunk_cap = 32;
  const auto engine = start_engine("llama_spm-f32", options, engine_options);
  Clients clients(engine, 8, 4);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  clients.stop(10'000);
  std::cout << clients.load().n_done() << " requests, " << clients.load().tokens << " tokens" << std::endl;
}

TEST(Hammer, EightThreadsOnOneEngine) {
  hammer({});
}

TEST(Hammer, EightThreadsOnTwoDevices) {
  EngineOptions options;
  options.devices = {0, 1};
  hammer(options);
}

}  // namespace
}  // namespace zinc_rt
