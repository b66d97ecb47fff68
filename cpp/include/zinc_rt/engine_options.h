// The options of an engine, and the table of them. Commands, configuration files, the server's API and Python visit the
// table: an option that has a row is there in all of them.
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

// Hears how many bytes of weights are ready.
struct OnProgress {
  using Call = std::function<void(std::uint64_t done, std::uint64_t total)>;
  OnProgress() = default;
  OnProgress(Call f) : call(std::move(f)) {}
  template <std::invocable<std::uint64_t, std::uint64_t> F>
  OnProgress(F f) : call(std::move(f)) {}
  // Who listens makes no other model.
  bool operator==(const OnProgress&) const { return true; }

  Call call;  // empty: nobody does
};

// What each member means its row says (engine_options(), below). An empty text and 0 leave the choice to the
// environment variable of the row, then to the engine.
struct EngineOptions {
  std::string tier;
  std::string backend;
  // The tier's devices that hold a replica of the model each: its weights, slots, pages and prefix cache. Those of t_cpu
  // are parts of the same processor, which share `threads`. More than one: docs/devices.md.
  std::vector<std::uint32_t> devices = {0};
  std::uint32_t max_slots = 64;
  std::uint32_t kv_pages = 0;
  std::uint32_t max_context = 0;
  std::string kv_dtype;
  // With a pooling but none the model embeds texts, with rank it scores pairs of them, and it generates nothing.
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

  // Equal options give the same model of the same file.
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

// Sets one option from a text, as a command line or a variable has it: a number, 1 or 0, numbers joined by commas.
// Errors: kInvalidArgument with name, text and what is wanted.
Status set_option(EngineOptions& options, const EngineOption& row, std::string_view text);

// Errors: kInvalidArgument for a value that is none of the option's choices, or out of its bounds.
Status check(const EngineOptions& options, const EngineOption& row);
Status check(const EngineOptions& options);  // all rows, in their order

}  // namespace zinc_rt
