// `zinc-rt convert`: converts a GGUF file to an MLC folder or back.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/print.h"
#include "kernels/cpu/quant/quant.h"
#include "model/gguf/writer.h"
#include "model/mlc/writer.h"
#include "model/weights.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

volatile std::sig_atomic_t stopped_by = 0;

// Makes Ctrl-C and SIGTERM stop the conversion between two tensors; the unfinished output is then removed. A second
// signal ends the process at once.
void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int signal) { stopped_by = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

struct ConvertOptions {
  std::string source, destination, to;
  bool json = false, force = false, progress = false;
};

void dequantize(DType dtype, const std::byte* row, std::span<float> out) {
  cpu::quant_format(dtype)->dequantize_row(row, out.data(), static_cast<std::int64_t>(out.size()));
}

// Copies all keys except those about the parts of a split model, because the output is one file.
Result<gguf::Metadata> whole(const gguf::Metadata& metadata) {
  gguf::Metadata out;
  for (const auto& [key, value] : metadata.entries())
    if (!key.starts_with("split.")) ZRT_CHECK_OK(out.add(key, value));
  return out;
}

Result<int> convert(const ConvertOptions& o) {
  const auto started = std::chrono::steady_clock::now();
  const bool from_folder = std::filesystem::is_directory(o.source);
  const std::string to = !o.to.empty() ? o.to : from_folder ? "gguf" : "mlc";
  if (std::filesystem::exists(o.destination)) {
    const bool empty = std::filesystem::is_directory(o.destination) && std::filesystem::is_empty(o.destination);
    if (to == "gguf" ? !o.force || std::filesystem::is_directory(o.destination) : !empty)
      return fail(StatusCode::kInvalidArgument, "[convert] {}: needs a name that is free, something is there{}",
                  o.destination, to == "gguf" ? "; --force replaces a file" : "");
  }
  ZRT_TRY(const Weights weights, Weights::open(o.source));
  catch_signals();
  const auto on_progress = [&weights, bar = progress_bar("writing", o.progress)](std::uint64_t done,
                                                                                 std::uint64_t total) -> Status {
    if (bar) bar(done, total);
    ZRT_CHECK_OK(weights.is_whole());
    return stopped_by == 0 ? Status{} : fail(StatusCode::kUnavailable, "[convert] stopped; nothing was left behind");
  };
  nlohmann::ordered_json out{{"source", o.source}, {"destination", o.destination}, {"to", to}};
  out["source_bytes"] = weights.file_bytes();
  if (to == "gguf") {
    ZRT_TRY(const auto metadata, whole(weights.metadata()));
    ZRT_TRY(out["bytes"], gguf::write_file(o.destination, metadata, weights.all(), {.on_progress = on_progress}));
    out["tensors"] = weights.all().size();
  } else {
    ZRT_TRY(const auto written,
            mlc::write_folder(o.destination, weights, {.dequantize = dequantize, .on_progress = on_progress}));
    out["bytes"] = written.n_bytes;
    out["tensors"] = weights.all().size();
    out["shards"] = written.n_shards;
    out["exact"] = written.n_exact;
    out["quantized"] = written.n_quantized;
  }
  out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (o.json) {
    print_out("{}\n", out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return kDone;
  }
  for (const auto& [key, value] : out.items())
    print_out("{:14} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  return kDone;
}

}  // namespace

void add_convert(CLI::App& app, int& exit) {
  auto o = std::make_shared<ConvertOptions>();
  auto& command = *app.add_subcommand("convert", "a GGUF file to an MLC folder of q4f16_1 weights, or back");
  command.footer(
      "Example: zinc-rt convert model.gguf model-q4f16_1-MLC\n"
      "To MLC, Q4_0 matrices keep their values and all others are quantized to 4 bits; to GGUF, all values are kept.\n"
      "A split GGUF model with --to gguf becomes one file.\n"
      "Families: llama (Llama, Mistral, SmolLM2) and phi3.");
  command.add_option("SOURCE", o->source, "a GGUF file (of a split model, the first) or an MLC folder")->required();
  command.add_option("DESTINATION", o->destination, "what to write; a name that is free")->required();
  command.add_option("--to", o->to, "mlc or gguf; by default the one that the source is not")
      ->check(CLI::IsMember({"mlc", "gguf"}));
  command.add_flag("--force", o->force, "replace a GGUF file");
  command.add_flag("--progress", o->progress, "show the progress bar even where stderr is no terminal");
  command.add_flag("--json", o->json, "the summary as one JSON object");
  command.callback([o, &exit] {
    const auto done = convert(*o);
    exit = done ? *done : report(done.error());
    if (!done && stopped_by != 0)
      // The default handler was restored, so the process now ends by this signal, and its parent sees the signal as the
      // reason.
      std::raise(stopped_by);
  });
}

}  // namespace zinc_rt::tools
