// `zinc-rt plan`: prints the memory map of an engine, region by region.
#include <fmt/format.h>

#include <memory>

#include "base/print.h"
#include "tools/command.h"
#include "tools/table.h"
#include "tools/units.h"

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
      print_out("{}\n", to_json(plan));
      return;
    }
    Table table{{"REGION", "HEAP", "SIZE", "", "WHAT"}};
    std::uint64_t when_used = 0;
    for (const auto& region : plan.regions) {
      const bool is_cache = region.name.ends_with("kv_pages");
      if (is_cache && !region.mapped) when_used += region.bytes;
      table.push_back({region.name, region.heap, bytes_text(region.bytes),
                       region.mapped ? "mapped"
                       : is_cache    ? "when used"
                                     : "",
                       region.note});
    }
    print_out("{}\nallocated {}, used in the file {} (mapped)\n", as_text(table), bytes_text(plan.allocated_bytes),
              bytes_text(plan.mapped_bytes));
    if (plan.devices.size() > 1) {
      Table devices{{"DEVICE", "ALLOCATED", "KV PAGES", "SLOTS", ""}};
      for (const auto& device : plan.devices)
        devices.push_back({std::to_string(device.index), bytes_text(device.allocated_bytes),
                           std::to_string(device.kv_pages), std::to_string(device.max_slots), device.name});
      print_out("That is device {}; the others hold as much each.\n\n{}", plan.devices.front().index, as_text(devices));
    }
    // The system allocates a page of host memory when it is first written.
    if (when_used > 0 && engine->tier() == "t_cpu")
      print_out(
          "Of the allocated, {} of KV pages take memory only as requests fill them; --kv-pages, --max-slots and\n"
          "--max-context make them fewer.\n",
          bytes_text(when_used));
  });
}

}  // namespace zinc_rt::tools
