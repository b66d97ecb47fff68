// zinc-rt bench: measures the speed of prefill and of decoding: one stream, batches, and long contexts.
#include "tools/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/output_file.h"
#include "base/print.h"

namespace zinc_rt::tools {
namespace {

Result<int> bench(BenchOptions& o) {
  if (!o.kv_quality.empty()) {
    ZRT_CHECK_OK(bench_kv_quality(o));
    return kDone;
  }
  ZRT_TRY(const auto result, measure_engine(o));
  std::optional<Roofline> roofline;
  if (o.roofline) {
    ZRT_TRY(roofline, measure_roofline(result));
  }
  print_out("{}", bench_text(result, roofline));
  const auto json = bench_json(result, roofline).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  ZRT_CHECK_OK(write_whole(o.json_path, json + '\n'));
  ZRT_CHECK_OK(write_whole(o.markdown_path, bench_markdown(result, roofline)));
  return kDone;
}

}  // namespace

Status write_whole(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  ZRT_TRY(auto file, OutputFile::create(path));
  ZRT_CHECK_OK(file.write(text));
  return file.commit();
}

StatusLine::StatusLine(bool always) : on_(always || isatty(STDERR_FILENO) != 0) {}

StatusLine::~StatusLine() {
  show("");
}

void StatusLine::show(const std::string& text) const {
  if (on_) print_err("\r{:78}\r{}", "", text);
}

void add_bench(CLI::App& app, int& exit) {
  auto o = std::make_shared<BenchOptions>();
  o->model.engine.max_slots = 1;  // set later to the largest number of --batch
  auto& command = *app.add_subcommand("bench", "speed of prefill and decoding, alone, in batches, at long contexts");
  command.footer(
      "Example: zinc-rt bench model.gguf --threads 1 --batch 1,8,16 --roofline --markdown speed.md\n"
      "A server under load: zinc-rt bench serve --help");
  add_model_options(command, o->model);
  command.get_option("MODEL")->required(false);  // because `bench serve` takes no MODEL
  add_bench_serve(command, exit);
  const CLI::Range tokens(1, 1 << 24), streams(1, 1 << 10);
  command.add_option("--prompt", o->prompt, "tokens of the prompt in prefill")->check(tokens)->capture_default_str();
  command.add_option("--gen", o->gen, "tokens that a stream decodes in a repetition; at long contexts 32 at most")
      ->check(tokens)
      ->capture_default_str();
  command.add_option("--batch", o->batch, "streams at once")->delimiter(',')->check(streams)->capture_default_str();
  command.add_option("--depth", o->depth, "tokens that each of these streams holds when it begins to decode")
      ->check(tokens)
      ->capture_default_str();
  command.add_option("--context", o->context, "tokens that a stream holds; what the model cannot hold is cut")
      ->delimiter(',')
      ->check(tokens)
      ->capture_default_str();
  command.add_option("--reps", o->reps, "repetitions")->check(CLI::Range(1, 1000))->capture_default_str();
  command.add_option("--only", o->only, "one part of it")
      ->check(CLI::IsMember({"prefill", "decode", "batch", "context"}));
  command.add_flag("--roofline", o->roofline,
                   "set beside it the rates at which this machine reads memory and multiplies bytes");
  command
      .add_option("--kv-quality", o->kv_quality,
                  "instead: perplexity of built-in prose with these types of the KV cache, and how far the logits are "
                  "from an f32 cache's")
      ->delimiter(',');
  command
      .add_option("--guess-right", o->guess_right,
                  "decode and batch twice, the second time with a prediction of which each token is right with this "
                  "probability")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", o->seed, "of the token ids")->capture_default_str();
  command.add_option("--json", o->json_path, "a file to write");
  command.add_option("--markdown", o->markdown_path, "a file to write");
  command.callback([o, &exit, &command] {
    if (command.got_subcommand("serve")) return;
    if (o->model.model.empty()) throw CLI::RequiredError("MODEL");
    const auto done = bench(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
