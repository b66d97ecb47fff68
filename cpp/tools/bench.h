// The parts of `zinc-rt bench` share these types and functions: options, measurements and reports.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/command.h"

namespace zinc_rt::tools {

// The prompts of streams whose decoding is measured have this many tokens.
constexpr std::uint32_t kShortPrompt = 16;

struct BenchOptions {
  ModelOptions model;
  std::uint32_t prompt = 512, gen = 128, reps = 5;
  std::uint32_t depth = kShortPrompt;  // number of tokens in the context of each stream of `batch` when decoding begins
  std::vector<std::uint32_t> batch{1, 2, 4, 8, 16}, context{128, 1024, 4096, 8192};
  // Measures the gain of guessed tokens. Each stream of `decode` and `batch` decodes the same tokens twice. First it
  // gets no guesses. Then it gets a prediction of which each token is right with this probability. Absent: guesses are
  // not measured.
  std::optional<double> guess_right;
  std::uint64_t seed = 1;
  std::string only;  // prefill, decode, batch or context; empty: all
  // If not empty: the quality of these KV cache types is measured in place of speed.
  std::vector<std::string> kv_quality;
  std::string json_path, markdown_path;
  bool roofline = false;
};

enum class BenchPhase : std::uint8_t { kPrefill, kDecode, kBatch, kContext };
const char* to_string(BenchPhase phase);

// Samples holds the values of a measurement, one per repetition.
struct Samples {
  std::vector<double> values;

  double median() const;  // returns 0 if there are no values
  double min() const;
  double max() const;
};

// BenchRow is the result of one configuration, such as decoding with 4 streams.
struct BenchRow {
  BenchPhase phase = BenchPhase::kDecode;
  std::uint32_t n_streams = 1;
  // Prefill: tokens of the prompt; otherwise tokens that each stream decodes per repetition.
  std::uint32_t n_tokens = 0;
  std::uint32_t context = 0;  // tokens in a stream's context when the measurement begins
  Samples tokens_per_s;       // tokens per second, summed over all streams
  std::uint64_t n_steps = 0;  // engine steps per repetition; only for prefill
  // Tokens per second of the runs without guesses; set only with BenchOptions::guess_right.
  Samples without_guesses;
};

// The results of a whole run. `card` and `plan` are the engine's descriptions of the model and of its memory, as JSON.
struct BenchResult {
  nlohmann::ordered_json card, plan;
  int n_threads = 0;
  std::string kernels;  // the kernel set of T-CPU that was requested
  std::uint32_t n_reps = 0;
  std::vector<std::string> clamps;
  std::vector<BenchRow> rows;
};

// Opens the engine (prefix cache off), warms it up and measures the rows. Errors: the engine's; kInvalidArgument if the
// options leave nothing to measure.
Result<BenchResult> measure_engine(BenchOptions& options);

// ReadRate tells how fast threads sum a buffer, which is an upper bound for the speed of reading weights.
struct ReadRate {
  std::uint64_t bytes = 0;  // size of the buffer
  int n_threads = 1;
  Samples gb_per_s;
};

// The peak rate of the 8-bit multiply-add instructions that the kernel set's LINEAR uses, measured on registers only. A
// multiply-add counts as two operations.
struct Int8Peak {
  std::string kernels;
  int n_threads = 1;
  Samples gop_per_s;
};

// Compares a measured row with the rates of the machine.
struct RooflineRow {
  std::size_t row = 0;             // index in BenchResult::rows
  double step_ms = 0;              // time of a decode step, or of a whole prefill
  std::uint64_t weight_bytes = 0;  // bytes read per step; 0 if that depends on the text (mixture of experts)
  std::uint64_t kv_bytes = 0;      // bytes read per step, including recurrent state
  // Operations per step, in 10^9, where a multiply-add counts as two. matrix_gop counts only the operations of matrix
  // products.
  double gop = 0, matrix_gop = 0;
  double gb_per_s = 0, gop_per_s = 0;  // 0 if not known
  // gb_per_s divided by the rate of a buffer of the weights' size (of_own_size) and by the rate of the large buffer
  // (of_large).
  double of_own_size = 0, of_large = 0;
  double of_int8_peak = 0;  // rate of matrix operations divided by int8_peak; 0 if int8_peak is absent
};

struct Roofline {
  // Rates for all threads and for one thread, each with a large buffer and with a buffer of the weights' size.
  std::vector<ReadRate> rates;
  std::optional<Int8Peak> int8_peak;  // measured with all threads; absent if tier or activations use no 8-bit products
  std::vector<RooflineRow> rows;
};
Result<Roofline> measure_roofline(const BenchResult& result);

// Prints the perplexity of kProse (prose.txt) with each cache type of o.kv_quality, and how much the logits differ from
// the logits with an f32 cache. If paths are given, it also writes the result to files.
extern const char kProse[];
Status bench_kv_quality(const BenchOptions& o);

nlohmann::ordered_json bench_json(const BenchResult& result, const std::optional<Roofline>& roofline);
std::string bench_text(const BenchResult& result, const std::optional<Roofline>& roofline);
std::string bench_markdown(const BenchResult& result, const std::optional<Roofline>& roofline);

}  // namespace zinc_rt::tools
