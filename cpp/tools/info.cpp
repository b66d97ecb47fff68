// zinc-rt info: the model card.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tools/command.h"

namespace zinc_rt::tools {

void add_info(CLI::App& app, int& exit) {
  struct Options {
    ModelOptions model;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  auto& command = *app.add_subcommand("info", "the model card: family, sizes, bytes a token");
  command.footer("Example: zinc-rt info model.gguf --json");
  add_model_options(command, o->model);
  command.add_flag("--json", o->json, "as one JSON object");
  command.callback([o, &exit] {
    const auto engine = open_engine(o->model);
    if (!engine) {
      exit = report(engine.error());
      return;
    }
    const auto json = to_json(*engine->model_card());
    if (o->json) {
      fmt::print("{}\n", json);
      return;
    }
    const auto card = nlohmann::ordered_json::parse(json);
    for (const auto& [key, value] : card.items())
      fmt::print("{:28} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  });
}

}  // namespace zinc_rt::tools
