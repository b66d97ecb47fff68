#include "server/answers/model_options.h"

#include <variant>

#include "base/error.h"

namespace zinc_rt::server {
namespace {

ApiResult<void> take(Fields& fields, const EngineOption& row, std::string& out) {
  constexpr std::size_t kLongest = 256;
  ZRT_TRY(const auto text,
          row.choices.empty() ? fields.get_string(row.name, kLongest) : fields.get_choice(row.name, row.choices));
  if (text) out = *text;
  return {};
}
ApiResult<void> take(Fields& fields, const EngineOption& row, std::uint32_t& out) {
  ZRT_TRY(const auto number, fields.get_int(row.name, row.least, row.most));
  if (number) out = static_cast<std::uint32_t>(*number);
  return {};
}
ApiResult<void> take(Fields& fields, const EngineOption& row, bool& out) {
  ZRT_TRY(const auto is_on, fields.get_bool(row.name));
  if (is_on) out = *is_on;
  return {};
}
// Reads a list of device numbers; the engine checks its entries.
ApiResult<void> take(Fields& fields, const EngineOption& row, std::vector<std::uint32_t>& out) {
  constexpr std::size_t kMostDevices = 64;
  ZRT_TRY(const auto devices, fields.get_ids(row.name, kMostDevices, "numbers of devices"));
  if (devices) out.assign(devices->begin(), devices->end());
  return {};
}

}  // namespace

ApiResult<void> read_model_options(Fields& fields, EngineOptions& options) {
  for (const EngineOption& row : engine_options())
    if (row.audience != EngineOption::Audience::kEngine)
      ZRT_CHECK_OK(std::visit([&](auto member) { return take(fields, row, options.*member); }, row.member));
  return {};
}

}  // namespace zinc_rt::server
