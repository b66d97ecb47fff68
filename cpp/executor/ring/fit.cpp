#include "executor/ring/fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/error.h"
#include "kernels/common/kv_page.h"

namespace zinc_rt {
namespace {

// The device memory that a plan needs: a fixed part, and the bytes of each page.
struct Need {
  std::uint64_t fixed = 0, page = 0, least_pages = 0;
  std::uint64_t bytes() const { return fixed + page * least_pages; }
};

std::uint64_t one_context(const Prepared& p) {
  return p.graph_options.max_context / kPageTokens;
}

// Returns the layout with one page, in which the experts from layer `first_host_layer` on are in host memory.
Layout layout_of(const Prepared& p, const ExecutorOptions& options, std::uint32_t first_host_layer,
                 std::uint64_t scratch_bytes) {
  return layout_with(p, options, false, {1, first_host_layer, scratch_bytes});
}

Need need_of(const Prepared& p, const ExecutorOptions& options, const Layout& layout) {
  return {layout.plan.bytes(Heap::kDeviceLocal) + layout.plan.bytes(Heap::kBar) - layout.page_bytes, layout.page_bytes,
          options.kv_pages > 0 ? options.kv_pages : one_context(p)};
}

bool would_fit(Prepared& p, const ExecutorOptions& options, const Target& target) {
  if (!shape(p, options, target)) return false;
  const auto scratch = target.budget->scratch_bytes(p);
  return scratch && need_of(p, options, layout_of(p, options, 0, *scratch)).bytes() <= target.budget->free;
}

// Returns the largest number in [1, below) for which `fits` returns true; 0 if there is none. REQUIRES: if a number
// fits, all smaller ones fit.
template <class Fits>
std::uint32_t largest(std::uint32_t below, const Fits& fits) {
  const auto numbers = std::views::iota(std::uint32_t{1}, std::max(below, 1u));
  return static_cast<std::uint32_t>(std::ranges::partition_point(numbers, fits) - numbers.begin());
}

// Returns the longest context that fits with these options; 0 if none fits. The pages must hold at least one context,
// and at most `most_pages` are tried.
std::uint32_t longest_context(Prepared& p, ExecutorOptions options, const Target& target, std::uint32_t most_pages) {
  options.kv_pages = 0;
  return kPageTokens * largest(most_pages + 1, [&](std::uint32_t n_pages) {
           options.max_context = n_pages * kPageTokens;
           return would_fit(p, options, target);
         });
}

std::uint32_t most_slots(Prepared& p, ExecutorOptions options, const Target& target) {
  const std::uint32_t slots = options.max_slots, checkpoints = options.state_checkpoints / slots;
  options.kv_pages = 0;
  return largest(slots, [&](std::uint32_t n_slots) {
    options.max_slots = n_slots;
    options.state_checkpoints = checkpoints * n_slots;
    return would_fit(p, options, target);
  });
}

// Returns a text for the error message. The text names the value of one option with which the plan would fit. If no
// single option suffices, it names values of two options.
std::string what_fits(Prepared& p, const ExecutorOptions& options, const Target& target, const Need& need) {
  if (const std::uint64_t free = target.budget->free; options.kv_pages > 0 && need.fixed + need.page <= free)
    return fmt::format("kv_pages up to {} would fit", (free - need.fixed) / need.page);
  const auto pages = static_cast<std::uint32_t>(one_context(p));
  std::vector<std::string> ways;
  if (const auto n = longest_context(p, options, target, pages); n > 0)
    ways.push_back(fmt::format("max_context up to {}", n));
  if (const auto n = most_slots(p, options, target); n > 0) ways.push_back(fmt::format("max_slots up to {}", n));
  if (!ways.empty()) return fmt::format("{} would fit", fmt::join(ways, " or "));
  auto one_slot = options;
  one_slot.max_slots = 1;
  one_slot.state_checkpoints = options.state_checkpoints / options.max_slots;
  if (const auto n = longest_context(p, one_slot, target, pages); n > 0)
    return fmt::format("max_slots 1 with max_context up to {} would fit", n);
  return "no max_context, max_slots or kv_pages would fit";
}

std::unexpected<Error> refuse(Prepared& p, const ExecutorOptions& options, const Target& target, const Need& need) {
  std::uint64_t weights = 0;
  for (const auto& region : p.layout.plan.regions)
    if (region.name.starts_with("weights.")) weights += region.bytes;
  const auto experts = layout_of(p, options, 0, 0).host_expert_bytes;
  weights -= std::min(experts, weights);
  const auto with_experts =
      experts == 0 ? std::string() : fmt::format(" even with all experts ({} bytes) in host memory", experts);
  const auto parts = fmt::format("weights {}, {} KV pages of {}, all else {}", weights, need.least_pages, need.page,
                                 need.fixed - weights);
  return fail(StatusCode::kExhausted, "[executor] {} wants {} bytes of device memory{}, {} of {} are free ({}); {}",
              p.config.name, need.bytes(), with_experts, target.budget->free, target.budget->total, parts,
              what_fits(p, options, target, need));
}

}  // namespace

Layout layout_with(const Prepared& p, const ExecutorOptions& options, bool maps_weights, const Fit& fit) {
  return make_layout(p.run_graphs(), {.limits = p.limits,
                                      .n_pages = fit.n_pages,
                                      .aliasing = options.aliasing,
                                      .weights_mapped = maps_weights,
                                      .first_host_layer = fit.first_host_layer,
                                      .n_operand_sets = p.graph_options.keeps_tokens ? 2u : 1u,
                                      .scratch_bytes = fit.scratch_bytes,
                                      .joins = p.joins,
                                      .lender = p.model != nullptr ? &p.model->layout : nullptr});
}

Result<Fit> fit_device(Prepared& p, const ExecutorOptions& options, const Target& target) {
  const DeviceBudget& budget = *target.budget;
  Fit fit;
  ZRT_TRY(fit.scratch_bytes, budget.scratch_bytes(p));
  const auto fits = [&](std::uint32_t n_device_layers) {
    return need_of(p, options, layout_of(p, options, n_device_layers, fit.scratch_bytes)).bytes() <= budget.free;
  };
  if (const auto least = need_of(p, options, layout_of(p, options, 0, fit.scratch_bytes)); least.bytes() > budget.free)
    return refuse(p, options, target, least);
  // With more layers on the device a plan takes more device memory, so `largest` may search by bisection.
  const std::uint32_t on_device = largest(p.config.n_layers + 1, fits);
  fit.first_host_layer = on_device == p.config.n_layers ? kNoHostLayer : on_device;
  const auto layout = layout_of(p, options, fit.first_host_layer, fit.scratch_bytes);
  if (layout.host_expert_bytes > budget.host)
    return fail(StatusCode::kExhausted,
                "[executor] {}: experts of {} layers do not fit the device ({} of {} bytes are free), and the {} bytes "
                "that they take exceed the host's memory of {} bytes",
                p.config.name, layout.n_host_expert_layers, budget.free, budget.total, layout.host_expert_bytes,
                budget.host);
  const Need need = need_of(p, options, layout);
  fit.n_pages = options.kv_pages;
  if (fit.n_pages == 0)
    fit.n_pages = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(default_pages(p.sizes, p.layout.page_bytes, budget.total),
                                (budget.free - need.fixed) / std::max<std::uint64_t>(need.page, 1)));
  return fit;
}

}  // namespace zinc_rt
