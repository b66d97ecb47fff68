#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "base/platform/gpus.h"
#include "base/print.h"
#include "executor/registry.h"
#include "hub/store.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

// Draws a line such as: loading [#####.....]  52%  51.1 / 98.1 MB. On a terminal the line is rewritten.
void draw(bool rewrites, std::string_view verb, std::uint64_t done, std::uint64_t total) {
  constexpr std::size_t kWidth = 30;
  const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const auto filled = static_cast<std::size_t>(part * kWidth);
  print_err("{}{} [{}{}] {:3.0f}%  {:.1f} / {:.1f} MB{}", rewrites ? "\r" : "", verb, std::string(filled, '#'),
            std::string(kWidth - filled, '.'), 100 * part, static_cast<double>(done) / 1e6,
            static_cast<double>(total) / 1e6, !rewrites || done >= total ? "\n" : "");
}

}  // namespace

Progress progress_bar(std::string verb, bool always) {
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  if (!always && !is_terminal) return {};
  const int each = is_terminal ? 1 : 20;  // percent between two lines
  return [=, verb = std::move(verb), last = -1](std::uint64_t done, std::uint64_t total) mutable {
    const int percent = total > 0 ? static_cast<int>(100 * done / total) : 100;
    if (percent / each == last / each && last >= 0) return;
    last = percent;
    draw(is_terminal, verb, done, total);
  };
}

Result<std::string> model_path(const std::string& path_or_name) {
  return hub::Store().path_of(path_or_name);
}

Status find_draft_model(EngineOptions& options) {
  if (options.draft_model.empty()) options.draft_model = options::get("ZINC_RT_DRAFT_MODEL");
  if (options.draft_model.empty() || options.draft_model == kOwnMtpBlock) return {};
  auto path = model_path(options.draft_model);
  if (!path) return std::unexpected(about("draft_model", std::move(path).error()));
  options.draft_model = std::move(*path);
  return {};
}

namespace {

// Returns the names of a switch in both forms (on and off), so that either can override a configuration file.
std::string flags_of(const EngineOption& row) {
  if (*row.flags != '\0') return row.flags;
  std::string name(row.name);
  std::ranges::replace(name, '_', '-');
  return std::holds_alternative<bool EngineOptions::*>(row.member) ? fmt::format("--{},!--no-{}", name, name)
                                                                   : "--" + name;
}

CLI::Option* add(CLI::App& app, const EngineOption& row, bool& value) {
  return app.add_flag(flags_of(row), value, row.help + (value ? " [on]" : ""));
}
CLI::Option* add(CLI::App& app, const EngineOption& row, std::vector<std::uint32_t>& value) {
  return app.add_option(flags_of(row), value, row.help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str(fmt::format("{}", fmt::join(value, ",")));
}
CLI::Option* add(CLI::App& app, const EngineOption& row, std::uint32_t& value) {
  return app.add_option(flags_of(row), value, row.help)->capture_default_str();
}
CLI::Option* add(CLI::App& app, const EngineOption& row, std::string& value) {
  return app.add_option(flags_of(row), value, row.help)->default_str(value.empty() ? row.otherwise : value);
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options, const std::string& names) {
  auto& e = options.engine;
  app.add_option(names, options.model,
                 "a GGUF file (of a split model, the first), an MLC folder, or a name of `zinc-rt models`")
      ->required();
  for (const auto& [audience, group] :
       {std::pair(EngineOption::Audience::kAll, "Memory and speed"),
        std::pair(EngineOption::Audience::kMeasuring, "For those who measure and compare")})
    for (const EngineOption& row : engine_options()) {
      if (row.audience != audience) continue;
      std::visit(
          [&](auto member) {
            const auto* option = add(app, row, e.*member)->group(group);
            options.overrides.emplace_back([=, &e](EngineOptions& to) {
              if (option->count() > 0) to.*member = e.*member;
            });
          },
          row.member);
    }
  app.add_flag("--progress", options.progress, "show progress even where stderr is no terminal")
      ->group("Memory and speed");
}

Result<Engine> open_engine(ModelOptions& options) {
  options.engine.on_progress = progress_bar("loading", options.progress);
  ZRT_TRY(options.model, model_path(options.model));
  ZRT_CHECK_OK(find_draft_model(options.engine));
  ZRT_TRY(auto engine, Engine::open(options.model, options.engine));
  // A user who chose a tier or a backend gets no advice.
  const bool is_chosen = !options.engine.tier.empty() || !options.engine.backend.empty() ||
                         options::is_set("ZINC_RT_TIER") || options::is_set("ZINC_RT_BACKEND");
  if (const auto advice = is_chosen ? std::string() : advice_on_gpus(gpu_makers(), engine.tier()); !advice.empty())
    print_err("zinc-rt: {}\n", advice);
  return engine;
}

}  // namespace zinc_rt::tools
