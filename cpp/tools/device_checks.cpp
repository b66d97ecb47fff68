#include "tools/device_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/print.h"
#include "tools/table.h"

namespace zinc_rt::tools {

Result<std::vector<const ring::Tier*>> tiers_with_diagnostics(const std::string& wanted) {
  std::vector<const ring::Tier*> found;
  if (!wanted.empty()) {
    ZRT_TRY(const auto* tier, ring::find_tier(wanted));
    if (tier->diagnostics == nullptr)
      return fail(StatusCode::kInvalidArgument, "tier {} has nothing to ask its device with; t1 and t2 have", wanted);
    return std::vector{tier};
  }
  std::string reasons;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->diagnostics == nullptr) continue;
    const auto reason = tier->unavailable_reason();
    if (reason.empty())
      found.push_back(tier);
    else
      reasons += fmt::format("\n  {}: {}", tier->name, reason);
  }
  if (!found.empty()) return found;
  for (const auto& left_out : ring::left_out_tiers())
    if (left_out.name == "t1" || left_out.name == "t2")
      reasons += fmt::format("\n  {}: {}", left_out.name, left_out.why);
  return fail(StatusCode::kUnavailable, "no tier is here whose device can be asked about{}", reasons);
}

bool show_checks(std::span<const ring::DeviceCheck> checks, bool json) {
  auto list = nlohmann::ordered_json::array();
  Table table{{"BY", "WHAT", "US", "RESULT"}};
  for (const auto& check : checks) {
    table.push_back({check.way, check.name, fmt::format("{:.0f}", check.us),
                     check.error.empty() ? std::string("right") : check.error});
    list.push_back({{"by", check.way}, {"what", check.name}, {"us", check.us}, {"error", check.error}});
  }
  if (json)
    print_out("{}\n", list.dump());
  else
    print_out("{}", as_text(table));
  return std::ranges::all_of(checks, [](const auto& check) { return check.error.empty(); });
}

}  // namespace zinc_rt::tools
