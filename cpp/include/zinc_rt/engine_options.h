// The options of an engine, and a table with a row per option. Commands, configuration files, the server's API and
// Python all read this table, so an option with a row exists in each of them.
// Thread rule: plain values; the table never changes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt {

// Called with the number of bytes of weights that are ready.
struct OnProgress {
  using Call = std::function<void(std::uint64_t done, std::uint64_t total)>;
  OnProgress() = default;
  OnProgress(Call f) : call(std::move(f)) {}
  template <std::invocable<std::uint64_t, std::uint64_t> F>
  OnProgress(F f) : call(std::move(f)) {}
  // Always equal, because a listener does not change the model.
  bool operator==(const OnProgress&) const { return true; }

  Call call;  // empty: nobody does
};

// The row of a member says what it means (engine_options(), below). An empty text or 0 leaves the choice to the row's
// environment variable, then to the engine.
struct EngineOptions {
  std::string tier;
  std::string backend;
  // The devices that each hold a replica of the model, with its own weights, slots, pages and prefix cache. The devices
  // of t_cpu are parts of the same processor and share `threads`. More in docs/devices.md.
  std::vector<std::uint32_t> devices = {0};
  std::uint32_t max_slots = 64;
  std::uint32_t kv_pages = 0;
  std::uint32_t max_context = 0;
  std::string kv_dtype;
  // With rank the model scores pairs of texts. With any other pooling but none it embeds texts. In both cases it
  // generates nothing.
  std::string pooling;
  std::uint32_t threads = 0;
  std::string cpu_kernels;
  std::string arithmetic;
  std::string activations = "int8";
  std::uint32_t chunk_cap = 0;
  std::string fusion;
  bool repack = true;
  bool mmap = true;
  bool prefix_cache = true;
  std::uint32_t standard_gap_ms = 60;
  std::uint32_t queue_cap = 1024;
  std::string tools;
  bool control_tokens_in_text = false;
  std::uint32_t max_models = 0;
  OnProgress on_progress;  // has no row: it is no value that a text could give

  // Two equal sets of options open the same model from the same file.
  bool operator==(const EngineOptions&) const = default;
};

// A row of the table.
struct EngineOption {
  using Member = std::variant<std::string EngineOptions::*, std::vector<std::uint32_t> EngineOptions::*,
                              std::uint32_t EngineOptions::*, bool EngineOptions::*>;
  enum class Audience : std::uint8_t {
    kAll,        // whoever opens a model
    kMeasuring,  // those who measure and compare: no result depends on it, or it is for debugging
    kEngine,     // of the engine, not of one of its models: Python alone has it
  };

  const char* name;  // the keyword of Python, the key in a file and in a request
  Member member;
  std::string help;                            // for one line
  const char* otherwise = "";                  // what holds where the value is empty
  const char* variable = "";                   // the environment variable that is read where the value is empty or 0
  std::vector<std::string> choices = {};       // the texts that it takes; empty: whoever reads the text says
  std::uint32_t least = 0, most = UINT32_MAX;  // of a number
  Audience audience = Audience::kAll;
  const char* flags = "";  // of commands, where they are not --name-of-the-option alone
};

std::span<const EngineOption> engine_options();

// Sets one option from the text of a command line or an environment variable: a number, 1 or 0, or numbers joined by
// commas. Errors: kInvalidArgument with the name, the text and the expected form.
Status set_option(EngineOptions& options, const EngineOption& row, std::string_view text);

// Errors: kInvalidArgument for a value that is not one of the option's choices or not within its bounds.
Status check(const EngineOptions& options, const EngineOption& row);
Status check(const EngineOptions& options);  // all rows, in their order

}  // namespace zinc_rt
