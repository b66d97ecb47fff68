// `zinc-rt run-batch`: runs the lines of an OpenAI batch file and writes a file of answers, without a server.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/print.h"
#include "server/batches/offline_batch.h"
#include "server/models/models.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

struct RunBatchOptions {
  ModelOptions model;
  std::string id, input, output, errors;
};

// Returns the path for failed lines, such as out.errors.jsonl for out.jsonl.
std::string errors_beside(const std::string& output) {
  const std::filesystem::path path(output);
  return (path.parent_path() / (path.stem().string() + ".errors" + path.extension().string())).string();
}

Result<int> run_batch(const RunBatchOptions& o) {
  server::OfflineBatch batch;
  batch.input = o.input;
  batch.output = o.output;
  batch.errors = o.errors.empty() ? errors_beside(o.output) : o.errors;
  if (batch.input == batch.output || batch.input == batch.errors || batch.output == batch.errors)
    return fail(StatusCode::kInvalidArgument, "[run-batch] {}, {} and {} are not three files", batch.input,
                batch.output, batch.errors);
  ZRT_TRY(batch.model.path, model_path(o.model.model));
  // The lines of the batch may also use the model's name in the models folder.
  batch.model.id = !o.id.empty() || batch.model.path == o.model.model ? o.id : o.model.model;
  batch.model.options = o.model.engine;
  ZRT_CHECK_OK(find_draft_model(batch.model.options));
  batch.model.options.on_progress = progress_bar("loading", o.model.progress);
  server::widen_queue(batch.model.options);
  server::OfflineResult result;
  {
    const StatusLine line(o.model.progress);
    batch.show = [&](const server::BatchCounts& counts, std::uint64_t total) {
      line.show(fmt::format("{} of {} lines, {} failed", counts.completed + counts.failed, total, counts.failed));
    };
    ZRT_TRY(result, server::run_batch_offline(batch));
  }
  const auto& [counts, before, total] = result;
  std::error_code ignored;
  if (counts.failed == 0) std::filesystem::remove(batch.errors, ignored);
  const auto n_before = before.completed + before.failed;
  ZRT_CHECK_OK(
      print_now(fmt::format("{} lines: {} answered, in {}{}{}\n", total, counts.completed, batch.output,
                            counts.failed == 0 ? "" : fmt::format("; {} failed, in {}", counts.failed, batch.errors),
                            n_before == 0 ? "" : fmt::format("; {} of them by an earlier run", n_before))));
  return counts.failed == 0 ? kDone : kFailed;
}

}  // namespace

void add_run_batch(CLI::App& app, int& exit) {
  auto o = std::make_shared<RunBatchOptions>();
  auto& command = *app.add_subcommand("run-batch", "answer the lines of an OpenAI batch file, without a server");
  command.footer(
      "Each line of IN is a request: its name, the path of the API, and the body that this path takes:\n"
      "  {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {\"messages\":\n"
      "   [{\"role\": \"user\", \"content\": \"Name a colour\"}], \"max_tokens\": 8, \"seed\": 1}}   (on one line)\n"
      "/v1/completions, /v1/embeddings and /v1/responses are the other paths; a body's \"model\" may be left out.\n\n"
      "Example: zinc-rt run-batch model.gguf in.jsonl out.jsonl\n"
      "A run that was stopped goes on when the same command is given again: what OUT and the errors have is not run\n"
      "again. To try the failed lines once more, remove the file of errors first.\n"
      "Exit codes: 0 all lines were answered, 1 some failed, 3 IN is wrong. docs/batches.md has more.");
  add_model_options(command, o->model);
  command.add_option("IN", o->input, "a file of requests, one JSON object a line")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("OUT", o->output, "the answers, in the order in which they come; it is appended to")->required();
  command.add_option("--errors", o->errors, "the lines that failed; unless given, OUT with .errors before its ending");
  command.add_option("--id", o->id, "what the lines call the model; else the file's name");
  command.callback([o, &exit] {
    const auto done = run_batch(*o);
    exit = done ? *done : report(done.error());
  });
}

}  // namespace zinc_rt::tools
