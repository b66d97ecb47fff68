// The subcommands of zinc-rt share these functions. Each subcommand is one file, and cli.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "tools/cli.h"
#include "zinc_rt/engine.h"
#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Exit codes of all commands. kReaderGone is what a shell reports for a process that SIGPIPE ended.
enum Exit { kDone = 0, kFailed = 1, kBadUsage = 2, kRefused = 3, kReaderGone = 141 };

// Prints the error on stderr. Returns kRefused if the user's input is wrong, else kFailed. Prints nothing if the reader
// of standard output has closed it.
int report(const Error& error);

// Returns the text of --version: the version and the parts in this build.
std::string version_text();

// Returns a check for 64-bit integer options. CLI11 itself would accept -1 and too large numbers and clamp them.
CLI::Validator whole_number();

// Returns a function that draws a progress bar, if stderr is a terminal. Otherwise the function prints a line now and
// then if `always` is set; if not, the returned function is empty.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes
Progress progress_bar(std::string verb, bool always);

// Raises the limit on file descriptors as far as the system allows, because each connection uses one.
void raise_descriptor_limit();

// Writes a file, which appears whole or not at all. Does nothing if the path is empty.
Status write_whole(const std::string& path, const std::string& text);

// A line on stderr that is rewritten, and erased at the end. It is shown only if stderr is a terminal or `always` is
// set.
class StatusLine {
 public:
  explicit StatusLine(bool always);
  ~StatusLine();
  void show(const std::string& text) const;

 private:
  bool on_;
};

// ModelOptions holds the options of commands that open an engine.
struct ModelOptions {
  std::string model;
  EngineOptions engine;
  bool progress = false;
  // Each function sets one engine option in `to` if the user has set the option on the command line.
  std::vector<std::function<void(EngineOptions& to)>> overrides;
};
// Adds the options for the model and the engine. `names` are the names of the option for the model. REQUIRES: `options`
// outlives `app`.
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& names = "-m,--model,MODEL");
// Opens the engine, with a progress bar if stderr is a terminal or --progress is given.
Result<Engine> open_engine(ModelOptions& options);

// Runs a conversation on the terminal until its end, or reads a pipe with one message per line. Each message is sent
// with the whole history. `given` holds the names of the sampling settings that the user has set (sampling_options.h).
Result<int> converse(ModelOptions& model, const Request& request, const std::set<std::string>& given,
                     const std::string& system);

// Each of the following functions adds its subcommand to `app`. When the subcommand runs, it stores its exit code in
// `exit`.
void add_run(CLI::App& app, int& exit);
void add_chat(CLI::App& app, int& exit);
void add_info(CLI::App& app, int& exit);
void add_plan(CLI::App& app, int& exit);
void add_ir(CLI::App& app, int& exit);
void add_tiers(CLI::App& app, int& exit);
void add_tokenize(CLI::App& app, int& exit);
void add_convert(CLI::App& app, int& exit);
void add_validate(CLI::App& app, int& exit);
void add_sched_test(CLI::App& app, int& exit);
void add_trace(CLI::App& app, int& exit);
void add_pm4_test(CLI::App& app, int& exit);
void add_mem_test(CLI::App& app, int& exit);
void add_replay(CLI::App& app, int& exit);
void add_asm(CLI::App& app, int& exit);
void add_bench(CLI::App& app, int& exit);
void add_bench_serve(CLI::App& bench, int& exit);
void add_run_batch(CLI::App& app, int& exit);
void add_serve(CLI::App& app, int& exit);
void add_key(CLI::App& app, int& exit);
void add_completion(CLI::App& app, int& exit);
void add_models(CLI::App& app, int& exit);
void add_pull(CLI::App& app, int& exit);
void add_rm(CLI::App& app, int& exit);
void add_alias(CLI::App& app, int& exit);

}  // namespace zinc_rt::tools
