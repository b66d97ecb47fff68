// `zinc-rt tokenize`: prints the token ids of a text. It reads no tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/print.h"
#include "model/weights.h"
#include "tokenizer/tokenizer.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

struct TokenizeOptions {
  std::string model, text;
  bool no_special = false, no_parse = false, json = false;
};

Result<int> tokenize(const TokenizeOptions& o) {
  ZRT_TRY(const auto path, model_path(o.model));
  const auto metadata = Weights::open_metadata(path);
  if (!metadata) return std::unexpected(metadata.error());
  const auto tokenizer = Tokenizer::from_metadata(*metadata);
  if (!tokenizer) return std::unexpected(tokenizer.error());
  const auto ids = tokenizer->encode(o.text, !o.no_special, !o.no_parse);
  if (!ids) return std::unexpected(ids.error());
  if (o.json) {
    print_out("{}\n", nlohmann::json(*ids).dump());
    return kDone;
  }
  for (const auto id : *ids) print_out("{:8}  {}\n", id, tokenizer->token_text(id));
  return kDone;
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit) {
  auto o = std::make_shared<TokenizeOptions>();
  auto& command = *app.add_subcommand("tokenize", "the token ids of a text");
  command.footer("Example: zinc-rt tokenize model.gguf \"Hello, world\" --json");
  command
      .add_option("-m,--model,MODEL", o->model, "a GGUF file (one without tensors will do), an MLC folder, or a name")
      ->required();
  command.add_option("TEXT", o->text, "the text")->required();
  command.add_flag("--no-special", o->no_special, "add no BOS or EOS");
  command.add_flag("--no-parse-special", o->no_parse, "take special tokens in the text as plain text");
  command.add_flag("--json", o->json, "as a JSON list");
  command.callback([o, &exit] {
    const auto done = tokenize(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
