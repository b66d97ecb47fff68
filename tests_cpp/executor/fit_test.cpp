// Which experts and how many KV pages a device of a given size gets, to the byte, and what is said when nothing fits.
// No device is touched.
#include "executor/ring/fit.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "model_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kScratch = 1000, kMuch = std::uint64_t{1} << 40;

ExecutorOptions fit_options() {
  auto options = small_options();
  options.kv_pages = 10;
  return options;
}
DeviceBudget budget_of(std::uint64_t free) {
  return {free, kMuch, kMuch, [](const Prepared&) -> Result<std::uint64_t> { return kScratch; }};
}
Result<Prepared> fit_to(std::uint64_t free, const ExecutorOptions& options = fit_options(),
                        const char* model = "qwen3moe-Q4_K_M") {
  const auto budget = budget_of(free);
  return prepare(model_path(model), options, {false, &budget});
}
std::uint64_t device_bytes(const Prepared& p) {
  return p.layout.plan.bytes(Heap::kDeviceLocal) + p.layout.plan.bytes(Heap::kBar);
}
std::string fit_error(std::uint64_t free, const ExecutorOptions& options, const char* model) {
  const auto p = fit_to(free, options, model);
  if (p) return "fits";
  EXPECT_EQ(p.error().code, StatusCode::kExhausted);
  return p.error().message;
}
// The number after `words` in a text; 0: none.
std::uint32_t number_after(const std::string& text, const std::string& words) {
  const auto at = text.find(words + " ");
  return at == std::string::npos
             ? 0
             : static_cast<std::uint32_t>(std::strtoul(text.c_str() + at + words.size() + 1, nullptr, 10));
}

// A budget that is a byte short of a plan moves the experts of one layer more, the last ones first.
TEST(FitDevice, ExpertsGoLayerByLayerToTheByte) {
  ZRT_NEED_SHARED_FIXTURES();
  std::uint64_t free = kMuch, weights = 0;
  for (std::uint32_t n_host = 0;; ++n_host) {
    const auto p = fit_to(free);
    ASSERT_TRUE(p) << p.error().message;
    ASSERT_EQ(p->layout.n_host_expert_layers, n_host);
    EXPECT_LE(device_bytes(*p), free);
    EXPECT_EQ(p->layout.plan.find("scratch")->bytes, kScratch);
    EXPECT_EQ(p->layout.plan.find("kv_pages")->bytes, 10 * p->layout.page_bytes);
    std::uint64_t all = 0, host = 0;
    for (const auto& region : p->layout.plan.regions) {
      if (!region.name.starts_with("weights.")) continue;
      all += region.bytes;
      if (region.heap == Heap::kHostVisible) host += region.bytes;
    }
    EXPECT_EQ(host, p->layout.host_expert_bytes);
    EXPECT_EQ(host > 0, n_host > 0);
    if (n_host == 0) weights = all;
    EXPECT_NEAR(double(all), double(weights), 3 * 256);  // alignment between tensors of a region
    const auto n_layers = p->config.n_layers;
    for (std::uint32_t layer = 0; layer < n_layers; ++layer) {
      const auto at = [&](const char* name) -> const RegionSpan& {
        return p->layout.locations.at(std::string(name) + "[" + std::to_string(layer) + "]");
      };
      for (const auto* name : {"model.moe.gate_weight", "model.moe.up_weight", "model.moe.down_weight"}) {
        const MemoryRegion* region = p->layout.plan.find(at(name).region);
        ASSERT_NE(region, nullptr);
        EXPECT_EQ(region->heap, layer + n_host >= n_layers ? Heap::kHostVisible : Heap::kDeviceLocal);
      }
      EXPECT_EQ(p->layout.plan.find(at("model.moe.router_weight").region)->heap, Heap::kDeviceLocal);
      EXPECT_EQ(p->layout.plan.find(at("model.attn.q_weight").region)->heap, Heap::kDeviceLocal);
    }
    free = device_bytes(*p) - 1;
    if (n_host < n_layers) continue;
    const auto text = fit_error(free, fit_options(), "qwen3moe-Q4_K_M");
    EXPECT_THAT(text, HasSubstr(std::to_string(free + 1) + " bytes of device memory even with all experts (" +
                                std::to_string(host) + " bytes) in host memory"));
    EXPECT_THAT(text, HasSubstr(std::to_string(free) + " of " + std::to_string(kMuch) + " are free"));
    EXPECT_THAT(text, HasSubstr("kv_pages up to 9 would fit"));
    break;
  }
}

// Pages that nobody asked for go before experts do, down to one context.
TEST(FitDevice, PagesGiveWayBeforeExperts) {
  ZRT_NEED_SHARED_FIXTURES();
  auto options = fit_options();
  options.kv_pages = 0;
  const auto all = fit_to(kMuch, options);
  ASSERT_TRUE(all);
  const std::uint32_t context = options.max_context / 16, most = 3 * context;
  EXPECT_EQ(all->graph_options.n_pages, most);
  const std::uint64_t page = all->layout.page_bytes, fixed = device_bytes(*all) - most * page;
  for (const std::uint32_t n : {most, most - 1, context + 1, context}) {
    const auto p = fit_to(fixed + n * page, options);
    ASSERT_TRUE(p);
    EXPECT_EQ(p->graph_options.n_pages, n);
    EXPECT_EQ(p->layout.n_host_expert_layers, 0u);
    EXPECT_EQ(device_bytes(*p), fixed + n * page);
  }
  // Where a layer's experts have gone, pages may have what they leave.
  const auto p = fit_to(fixed + context * page - 1, options);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->layout.n_host_expert_layers, 1u);
  EXPECT_GT(p->graph_options.n_pages, context);
  EXPECT_LE(device_bytes(*p), fixed + context * page - 1);
}

// What an error names fits, and the next larger value does not.
TEST(FitDevice, ErrorsNameWhatFits) {
  ZRT_NEED_SHARED_FIXTURES();
  for (const auto* model : {"qwen3moe-Q4_K_M", "qwen35moe-Q4_K_M", "llama_spm-f32"}) {
    auto options = fit_options();
    options.kv_pages = 0;
    options.max_slots = 40;
    options.state_checkpoints = 80;
    std::uint64_t least = 0;  // that still opens
    for (std::uint64_t step = std::uint64_t{1} << 30; step > 0; step /= 2)
      if (!fit_to(least + step, options, model)) least += step;
    const auto tight = fit_to(least + 1, options, model);
    ASSERT_TRUE(tight);
    EXPECT_EQ(device_bytes(*tight), least + 1) << model;
    const std::uint64_t free = least - 2 * tight->layout.page_bytes;
    const auto text = fit_error(free, options, model);
    EXPECT_THAT(text, HasSubstr(std::to_string(least + 1) + " bytes of device memory"));
    const auto context = number_after(text, "max_context up to"), slots = number_after(text, "max_slots up to");
    ASSERT_GT(context, 0u) << text;
    EXPECT_EQ(slots > 0, std::string(model) == "qwen35moe-Q4_K_M") << text;  // only recurrent state is by slot
    auto other = options;
    other.max_context = context;
    EXPECT_EQ(fit_error(free, other, model), "fits");
    other.max_context += 16;
    EXPECT_NE(fit_error(free, other, model), "fits");
    if (slots == 0) continue;
    other = options;
    other.max_slots = slots, other.state_checkpoints = 2 * slots;
    EXPECT_EQ(fit_error(free, other, model), "fits");
    other.max_slots += 1, other.state_checkpoints += 2;
    EXPECT_NE(fit_error(free, other, model), "fits");
  }
  // Where neither is enough by itself.
  auto one = fit_options();
  one.max_slots = 1, one.max_context = 16, one.kv_pages = 1;
  const auto smallest = fit_to(kMuch, one, "llama_spm-f32");
  ASSERT_TRUE(smallest);
  auto many = fit_options();
  many.max_slots = 40;
  EXPECT_THAT(fit_error(device_bytes(*smallest), many, "llama_spm-f32"),
              HasSubstr("max_slots 1 with max_context up to 16 would fit"));
  EXPECT_THAT(fit_error(device_bytes(*smallest) - 1, many, "llama_spm-f32"),
              HasSubstr("no max_context, max_slots or kv_pages would fit"));
  EXPECT_THAT(fit_error(1000, fit_options(), "llama_spm-f32"), HasSubstr("no max_context, max_slots or kv_pages"));
}

TEST(FitDevice, ExpertsMustFitTheHost) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto all = fit_to(kMuch);
  ASSERT_TRUE(all);
  auto budget = budget_of(device_bytes(*all) - 1);
  budget.host = 1000;
  const auto p = prepare(model_path("qwen3moe-Q4_K_M"), fit_options(), {false, &budget});
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, StatusCode::kExhausted);
  EXPECT_THAT(p.error().message, HasSubstr("the host's memory of 1000 bytes"));
}

}  // namespace
}  // namespace zinc_rt
