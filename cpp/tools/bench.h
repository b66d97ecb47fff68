// Shared by the parts of zinc-rt bench: the options, the measurements and the reports.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/command.h"

namespace zinc_rt::tools {

constexpr std::uint32_t kShortPrompt = 16;  // of streams whose decoding is measured

struct BenchOptions {
  ModelOptions model;
  std::uint32_t prompt = 512, gen = 128, reps = 5;
  std::uint32_t depth = kShortPrompt;  // tokens that the streams of `batch` hold when they begin to decode
  std::vector<std::uint32_t> batch{1, 2, 4, 8, 16}, context{128, 1024, 4096, 8192};
  std::uint64_t seed = 1;
  std::string only;                     // prefill, decode, batch or context; empty: all
  std::vector<std::string> kv_quality;  // types of the KV cache whose quality is measured instead
  std::string json_path, markdown_path;
  bool roofline = false;
};

enum class BenchPhase : std::uint8_t { kPrefill, kDecode, kBatch, kContext };
const char* to_string(BenchPhase phase);

// One value a repetition.
struct Samples {
  std::vector<double> values;

  double median() const;  // 0 when there are none
  double min() const;
  double max() const;
};

// What one configuration gave.
struct BenchRow {
  BenchPhase phase = BenchPhase::kDecode;
  std::uint32_t n_streams = 1;
  std::uint32_t n_tokens = 0;  // of the prompt in prefill, else decoded by each stream in a repetition
  std::uint32_t context = 0;   // tokens that a stream holds when the measured part begins
  Samples tokens_per_s;        // of all streams together
  std::uint64_t n_steps = 0;   // of the engine, a repetition; prefill only
};

// The results of a run. The card and the plan are the engine's own.
struct BenchResult {
  nlohmann::ordered_json card, plan;
  int n_threads = 0;
  std::string kernels;  // the set of T-CPU that was asked for
  std::uint32_t n_reps = 0;
  std::vector<std::string> clamps;
  std::vector<BenchRow> rows;
};

// Opens the engine (prefix cache off), warms it up and measures the rows. Errors: the engine's; kInvalidArgument if the
// options leave nothing to measure.
Result<BenchResult> measure_engine(BenchOptions& options);

// The rate at which threads sum a buffer: an upper bound for reading weights.
struct ReadRate {
  std::uint64_t bytes = 0;  // of the buffer
  int n_threads = 1;
  Samples gb_per_s;
};

// The rate of byte multiply-adds that the kernel set's LINEAR uses, on registers only; each counts as two operations.
struct Int8Peak {
  std::string kernels;
  int n_threads = 1;
  Samples gop_per_s;
};

// A row beside the rates.
struct RooflineRow {
  std::size_t row = 0;                   // in BenchResult::rows
  double step_ms = 0;                    // of a decode step, or of a whole prefill
  std::uint64_t weight_bytes = 0;        // read a step; 0 where that depends on the text
  std::uint64_t kv_bytes = 0;            // read a step, recurrent state included
  double gop = 0, matrix_gop = 0;        // billions of operations a step, a multiply and an add counting as two; a part
  double gb_per_s = 0, gop_per_s = 0;    // 0: not known
  double of_own_size = 0, of_large = 0;  // gb_per_s by the rate of a buffer as large as the weights; by the large one
  double of_int8_peak = 0;               // the matrices' operations alone, by that peak; 0: no such peak
};

struct Roofline {
  std::vector<ReadRate> rates;        // all threads and one, on a large buffer and on one of the weights' size
  std::optional<Int8Peak> int8_peak;  // with all threads; of a tier and activations that have one
  std::vector<RooflineRow> rows;
};
Result<Roofline> measure_roofline(const BenchResult& result);

// Prints the perplexity of kProse (prose.txt) with each cache type of o.kv_quality, and how far its logits are from
// those with an f32 cache. Also writes it to files if paths are given.
extern const char kProse[];
Status bench_kv_quality(const BenchOptions& o);

nlohmann::ordered_json bench_json(const BenchResult& result, const std::optional<Roofline>& roofline);
std::string bench_text(const BenchResult& result, const std::optional<Roofline>& roofline);
std::string bench_markdown(const BenchResult& result, const std::optional<Roofline>& roofline);

}  // namespace zinc_rt::tools
