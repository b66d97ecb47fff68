// `zinc-rt info`: prints the model card, or the tensors of any GGUF file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/print.h"
#include "model/weights.h"
#include "tools/command.h"
#include "tools/hindrances.h"
#include "tools/table.h"
#include "tools/units.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  ModelOptions model;
  bool json = false, tensors = false;
};

// Formats a value for display. The beginning and end of the key tell whether the value is a number of bytes or a count.
std::string readable(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (key.find("bytes") != std::string::npos && n > 0) return fmt::format("{} ({} bytes)", bytes_text(n), n);
    if (key == "n_parameters" || key == "n_active_parameters") return fmt::format("{} ({})", count_text(n), n);
  }
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  if (value.is_object() && key.find("bytes") != std::string::npos) {
    std::vector<std::string> parts;
    for (const auto& [name, bytes] : value.items())
      parts.push_back(name + " " + bytes_text(bytes.get<std::uint64_t>()));
    return fmt::format("{}", fmt::join(parts, ", "));
  }
  return value.dump();
}

Result<int> print_card(InfoOptions& o) {
  ZRT_TRY(const auto engine, open_engine(o.model));
  const auto json = to_json(*engine.model_card());
  if (o.json) {
    print_out("{}\n", json);
    return kDone;
  }
  const auto card = Json::parse(json);
  for (const auto& [key, value] : card.items()) print_out("{:28} {}\n", key, readable(key, value));
  return kDone;
}

// Prints the tensors of a file, and what hinders it from running. This needs no family, tier or memory, so it also works
// for files that no engine can open.
Result<int> print_tensors(const InfoOptions& o) {
  ZRT_TRY(const auto path, model_path(o.model.model));
  ZRT_TRY(auto weights, Weights::open(path));
  weights.use_fixed16();
  Json list = Json::array();
  Table table{{"TENSOR", "TYPE", "COMPUTED", "SHAPE", "SIZE"}};
  for (const auto& tensor : weights.all()) {
    std::vector<std::uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
    list.push_back({{"name", tensor.name},
                    {"type", to_string(tensor.stored)},
                    {"computed", to_string(tensor.dtype)},
                    {"shape", dims},
                    {"bytes", tensor.data.size()}});
    table.push_back({std::string(tensor.name), std::string(to_string(tensor.stored)),
                     std::string(to_string(tensor.dtype)), fmt::format("{}", fmt::join(dims, " x ")),
                     bytes_text(tensor.data.size())});
  }
  const auto found = hindrances(weights, o.model.engine.tier);
  if (o.json) {
    const Json all{
        {"file", path}, {"file_bytes", weights.file_bytes()}, {"tensors", std::move(list)}, {"hindrances", found}};
    print_out("{}\n", all.dump(-1, ' ', false, Json::error_handler_t::replace));
    return kDone;
  }
  print_out(
      "{}{} tensors, {}; the first number of a shape is the contiguous one; COMPUTED: the form that arithmetic exact "
      "computes with\n",
      as_text(table), weights.all().size(), bytes_text(weights.total_bytes()));
  if (!found.empty()) print_out("This file does not run:\n");
  for (const auto& one : found) print_out("  {}\n", one);
  return kDone;
}

}  // namespace

void add_info(CLI::App& app, int& exit) {
  auto o = std::make_shared<InfoOptions>();
  auto& command = *app.add_subcommand("info", "the model card: family, sizes, bytes a token; or the tensors");
  command.footer(
      "Example: zinc-rt info model.gguf --json\n"
      "  zinc-rt info model.gguf --tensors      of any GGUF file, also of one that does not run, and why it does not");
  add_model_options(command, o->model);
  command.add_flag("--tensors", o->tensors,
                   "the file's tensors instead: name, type, what it is computed as, shape, size");
  command.add_flag("--json", o->json, "as one JSON object");
  command.callback([o, &exit] {
    const auto done = o->tensors ? print_tensors(*o) : print_card(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
