// Defines the options of an engine, and a table with one row per option. Commands, configuration files, the server's
// API and Python all read this table, so an option with a row exists in each of them.
// Thread rule: plain values; the table never changes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt {

// OnProgress is called while a model is loaded, with the number of bytes of weights that are ready and their total.
struct OnProgress {
  using Call = std::function<void(std::uint64_t done, std::uint64_t total)>;
  OnProgress() = default;
  OnProgress(Call f) : call(std::move(f)) {}
  template <std::invocable<std::uint64_t, std::uint64_t> F>
  OnProgress(F f) : call(std::move(f)) {}
  // Two listeners always compare equal, because a listener does not change the model.
  bool operator==(const OnProgress&) const { return true; }

  Call call;  // if empty, progress is not reported
};

// The value of EngineOptions::draft_model for the model's own block for multi-token prediction.
inline constexpr std::string_view kOwnMtpBlock = "mtp";

// EngineOptions are the options with which a model is opened. The meaning of a member is in its row of the table
// engine_options() (below). If a text is empty or a number is 0, the environment variable of the row decides. If the
// variable is not set either, the engine decides.
struct EngineOptions {
  std::string tier;
  std::string backend;
  // Numbers of the devices that hold a replica of the model. Each replica has its own weights, slots, pages and prefix
  // cache. The devices of t_cpu are parts of the same processor and share `threads`. docs/devices.md explains more.
  std::vector<std::uint32_t> devices = {0};
  std::uint32_t max_slots = 64;
  std::uint32_t kv_pages = 0;
  std::uint32_t max_context = 0;
  std::string kv_dtype;
  // "none": the model generates tokens. "rank": the model scores pairs of texts. Any other pooling: the model embeds
  // texts. A model that scores or embeds generates no tokens.
  std::string pooling;
  std::uint32_t threads = 0;
  std::string cpu_kernels;
  std::string arithmetic;
  std::string activations = "int8";
  std::uint32_t chunk_cap = 0;
  bool run_ahead = true;
  std::string fusion;
  bool repack = true;
  bool mmap = true;
  bool prefix_cache = true;
  std::uint32_t standard_gap_ms = 60;
  std::uint32_t queue_cap = 1024;
  std::string speculate;
  std::string draft_model;
  std::string tools;
  bool control_tokens_in_text = false;
  std::uint32_t max_models = 0;
  OnProgress on_progress;  // has no row in the table, because no text can express a function

  // Returns whether both would open the same model from the same file.
  bool operator==(const EngineOptions&) const = default;
};

// EngineOption is a row of the table of options.
struct EngineOption {
  using Member = std::variant<std::string EngineOptions::*, std::vector<std::uint32_t> EngineOptions::*,
                              std::uint32_t EngineOptions::*, bool EngineOptions::*>;
  enum class Audience : std::uint8_t {
    kAll,        // an option for everybody who opens a model
    kMeasuring,  // an option for measuring, comparing or debugging
    kEngine,     // an option of the engine, not of one model; only Python accepts it
  };

  const char* name;  // keyword argument in Python, and key in configuration files and requests
  Member member;
  std::string help;                            // help text of one line
  const char* otherwise = "";                  // description of the value that is used if the option is not set
  const char* variable = "";                   // environment variable that is read if the value is empty or 0
  std::vector<std::string> choices = {};       // allowed texts; if empty, the code that reads the text checks it
  std::uint32_t least = 0, most = UINT32_MAX;  // bounds of a number, both inclusive
  Audience audience = Audience::kAll;
  const char* flags = "";  // flags of commands, if they are not just --name-of-the-option
};

std::span<const EngineOption> engine_options();

// Sets one option from the text of a command line or an environment variable. The text is a string, a number, 1 or 0
// (for a bool), or a list of numbers joined by commas. Errors: kInvalidArgument with the name, the text and the
// expected form.
Status set_option(EngineOptions& options, const EngineOption& row, std::string_view text);

// Checks that the value is one of the option's choices and within its bounds. Errors: kInvalidArgument.
Status check(const EngineOptions& options, const EngineOption& row);
Status check(const EngineOptions& options);  // checks all rows, in the order of the table

}  // namespace zinc_rt
