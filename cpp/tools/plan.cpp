// zinc-rt plan: the memory map of an engine, region by region.
#include <fmt/format.h>

#include <memory>

#include "tools/command.h"

namespace zinc_rt::tools {

void add_plan(CLI::App& app, int& exit) {
  struct Options {
    ModelOptions model;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  auto& command = *app.add_subcommand("plan", "the memory plan: bytes a region, by heap");
  command.footer("Example: zinc-rt plan model.gguf --max-context 4096 --max-slots 4 --json");
  add_model_options(command, o->model);
  command.add_flag("--json", o->json, "as one JSON object");
  command.callback([o, &exit] {
    const auto engine = open_engine(o->model);
    if (!engine) {
      exit = report(engine.error());
      return;
    }
    const auto plan = *engine->memory_plan();
    if (o->json) {
      fmt::print("{}\n", to_json(plan));
      return;
    }
    for (const auto& region : plan.regions)
      fmt::print("{:28} {:13} {:>14} bytes{}  {}\n", region.name, region.heap, region.bytes,
                 region.mapped ? " mapped" : "       ", region.note);
    fmt::print("{:28} {:13} {:>14} bytes\n", "allocated", "", plan.allocated_bytes);
    fmt::print("{:28} {:13} {:>14} bytes mapped\n", "used in the file", "", plan.mapped_bytes);
  });
}

}  // namespace zinc_rt::tools
