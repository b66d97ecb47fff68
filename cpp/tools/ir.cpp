// `zinc-rt ir`: prints the graph of a stage as text, either as the family built it or as it is run.
#include <fmt/format.h>

#include <memory>

#include "base/print.h"
#include "executor/ring/prepare.h"
#include "ir/text.h"
#include "tools/command.h"

namespace zinc_rt::tools {

void add_ir(CLI::App& app, int& exit) {
  struct Options {
    std::string model, stage = "decode", activations = "int8";
    ExecutorOptions executor;
    bool lowered = false;
  };
  auto o = std::make_shared<Options>();
  auto& command = *app.add_subcommand("ir", "print the graph of a model");
  command.footer("Example: zinc-rt ir model.gguf --stage prefill --lowered");
  command.add_option("MODEL", o->model, "a GGUF file or an MLC folder")->required();
  command.add_option("--stage", o->stage, "prefill or decode")->check(CLI::IsMember({"prefill", "decode"}));
  command.add_flag("--lowered", o->lowered, "after fusion and activation quantization");
  command.add_option("--fusion", o->executor.fusion, "1, 0, or a list of qkv, gate_up, rope_kv, residual");
  command.add_option("--activations", o->activations, "int8, or f32: quantize no activation")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str();
  command.callback([o, &exit] {
    o->executor.activations = *find_activations(o->activations);
    const auto prepared = prepare(o->model, o->executor);
    if (!prepared) {
      exit = report(prepared.error());
      return;
    }
    const bool decode = o->stage == "decode";
    print_out("{}", ir::print(o->lowered ? (decode ? prepared->decode_low : prepared->prefill_low)
                                         : (decode ? prepared->decode : prepared->prefill)));
  });
}

}  // namespace zinc_rt::tools
