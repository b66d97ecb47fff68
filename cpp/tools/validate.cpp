// `zinc-rt validate`: compares two runs of one prompt, layer by layer.
#include "zinc_rt/validate.h"

#include <fmt/format.h>

#include <memory>

#include "base/print.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

struct ValidateCommand {
  std::string model;
  ValidateOptions options;
  bool json = false;
};

int validate_command(const ValidateCommand& o) {
  // Errors in the command line are reported before a model is opened.
  const auto usage = [](const Error& error) {
    print_err("zinc-rt: {}\n", error.message);
    return kBadUsage;
  };
  for (const auto& tier : o.options.tiers)
    if (const auto side = parse_validate_side(tier); !side) return usage(side.error());
  if (const auto layers = parse_layers(o.options.layers, 1u << 20); !layers) return usage(layers.error());
  const std::size_t wanted = o.options.against.empty() ? 2 : 1;
  if (o.options.tiers.size() != wanted)
    return usage({StatusCode::kInvalidArgument,
                  fmt::format("--tiers names {} sides, {} wanted {} --against", o.options.tiers.size(), wanted,
                              wanted == 1 ? "with" : "without"),
                  0});
  const auto path = model_path(o.model);
  const auto found = path ? validate(*path, o.options) : std::unexpected(path.error());
  if (!found) {
    report(found.error());
    return kRefused;
  }
  print_out("{}", o.json ? found->to_json() + "\n" : found->to_text());
  return found->equal ? kDone : kFailed;
}

}  // namespace

void add_validate(CLI::App& app, int& exit) {
  auto o = std::make_shared<ValidateCommand>();
  auto& command = *app.add_subcommand("validate", "compare two runs of a prompt, layer by layer and in the logits");
  command.footer(
      std::string("Example: zinc-rt validate model.gguf --prompt \"Hello\" --tiers t_cpu+threads=1,t_cpu+chunk_cap=1 "
                  "--layers all\n") +
      "ends with EQUAL: neither threads nor chunks change a bit. t_cpu,t_cpu+activations=f32 shows what int8\n"
      "activations change.\n"
      "A side is a tier and options that differ from the defaults: t_cpu+kv_dtype=f32+chunk_cap=7. Options:\n"
      "  " +
      validate_side_options() +
      "; their values as `zinc-rt run --help` has them, 1 and 0 for on and off, / in a list\n"
      "Arrays for --against, stored with numpy.savez (float16/32/64, int32/64):\n"
      "  logits [rows, vocab] or [vocab]   prompt [n]: token ids, instead of --prompt and --ids\n"
      "  pos [rows]: token positions of the rows; absent: all, or the last for one row\n"
      "  hidden.N [n, model_dim]: the residual stream after layer N; hidden.embed before the first\n"
      "Exit codes: 0 equal, 1 different, 2 bad usage, 3 a side could not be run.");
  command.add_option("-m,--model,MODEL", o->model, "a GGUF file (of a split model, the first), or a name")->required();
  auto* prompt = command.add_option("--prompt", o->options.prompt, "text that both sides run");
  command.add_option("--ids", o->options.token_ids, "token ids instead, as 1,2,3")->delimiter(',')->excludes(prompt);
  command.add_option("--tiers", o->options.tiers, "the two sides as A,B; one side with --against")
      ->delimiter(',')
      ->required();
  command.add_option("--layers", o->options.layers, "all, none or a list such as embed,0,3,5-7")->capture_default_str();
  command.add_option("--against", o->options.against, "compare with the arrays of this .npz file");
  command.add_option("--tolerance", o->options.tolerance, "most |A - B| that counts as equal; 0: the same bits")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", o->json, "as one JSON object");
  command.callback([o, &exit] { exit = validate_command(*o); });
}

}  // namespace zinc_rt::tools
