// A subcommand of zinc-rt: one file each, listed in cli.cpp.
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

// Exit codes, the same for every command. The last: what a shell makes of a process that SIGPIPE ended.
enum Exit { kDone = 0, kFailed = 1, kBadUsage = 2, kRefused = 3, kReaderGone = 141 };

// Prints the error on stderr; kRefused when the input is at fault, else kFailed. Of a reader of the output who left, nothing
// is printed.
int report(const Error& error);

// Of --version: the version, and what was built in.
std::string version_text();

// For options of 64 bits: CLI11 makes the nearest number of -1 and of what is too large.
CLI::Validator whole_number();

// A bar on stderr where that is a terminal, else, with `always`, a line now and then; otherwise an empty function.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes
Progress progress_bar(std::string verb, bool always);

// As many descriptors as the system lets the process have: each connection is one.
void raise_descriptor_limit();

// The file appears whole or not at all; an empty path: nothing is written.
Status write_whole(const std::string& path, const std::string& text);

// A line on stderr that is rewritten, where that is a terminal or `always` is set; gone at the end.
class StatusLine {
 public:
  explicit StatusLine(bool always);
  ~StatusLine();
  void show(const std::string& text) const;

 private:
  bool on_;
};

// Options that open an engine, on any command that needs one.
struct ModelOptions {
  std::string model;
  EngineOptions engine;
  bool progress = false;
  // Each sets one of `to` if the command line has it.
  std::vector<std::function<void(EngineOptions& to)>> overrides;
};
// `names`: of the option that names the model. REQUIRES: options outlives app.
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& names = "-m,--model,MODEL");
// Opens it with a progress bar on stderr when that is a terminal or --progress is given.
Result<Engine> open_engine(ModelOptions& options);

// A conversation on the terminal (or from a pipe, a line a turn) until its end; the whole history goes into each turn.
// `given`: the settings of sampling that were asked for (sampling_options.h).
Result<int> converse(ModelOptions& model, const Request& request, const std::set<std::string>& given,
                     const std::string& system);

// Each adds its subcommand; the callback leaves its exit code in `exit`.
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
