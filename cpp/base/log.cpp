#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include "base/options.h"

namespace zinc_rt {

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("zinc_rt", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::from_str(options::get("ZINC_RT_LOG")));
    made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *logger;
}

}  // namespace zinc_rt
