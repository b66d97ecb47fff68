// The part of `zinc-rt bench` that runs with --roofline. It compares the bytes and operations of a step with the rates
// at which this machine reads memory and multiplies bytes, measured in the same run. The read test sums 64-bit words,
// which costs the processor less than plain loads.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/platform/host_pages.h"
#include "base/thread_pool.h"
#include "ring/cpu/kernel_sets.h"
#include "tools/bench.h"

namespace zinc_rt::tools {
namespace {

// Bounds of the size of the large buffer, in bytes. A buffer of kMostLarge bytes is so large that caches have no
// effect.
constexpr std::uint64_t kLeastLarge = 256u << 20, kMostLarge = 1u << 30;
constexpr std::uint64_t kPiece = 1u << 20;   // number of bytes that a thread claims at a time
constexpr std::uint64_t kRounds = 1u << 13;  // multiply-adds per thread and call
constexpr double kLeastSeconds = 0.05;       // per sample; passes are repeated until it is reached

// WordBuffer is zeroed memory. It uses large pages if the system has them.
class WordBuffer {
 public:
  explicit WordBuffer(std::uint64_t bytes) : bytes_(bytes), memory_(allocate_pages(bytes)) {
    if (memory_ != nullptr) prefer_large_pages(memory_, bytes);
  }
  ~WordBuffer() {
    if (memory_ != nullptr) free_pages(memory_, bytes_);
  }
  WordBuffer(const WordBuffer&) = delete;
  WordBuffer& operator=(const WordBuffer&) = delete;

  bool is_there() const { return memory_ != nullptr; }
  std::span<std::uint64_t> words() const { return {reinterpret_cast<std::uint64_t*>(memory_), bytes_ / 8}; }

 private:
  std::uint64_t bytes_;
  std::byte* memory_;
};

std::uint64_t sum_words(std::span<const std::uint64_t> words) {
  std::uint64_t sums[16] = {};  // several sums, so that the compiler can vectorize
  std::size_t i = 0;
  for (; i + 16 <= words.size(); i += 16)
    for (std::size_t lane = 0; lane < 16; ++lane) sums[lane] += words[i + lane];
  for (; i < words.size(); ++i) sums[0] += words[i];
  std::uint64_t sum = 0;
  for (const auto part : sums) sum += part;
  return sum;
}

Result<Samples> read_rates(ThreadPool& pool, std::span<std::uint64_t> words, std::uint32_t reps) {
  const std::uint64_t n_pieces = (words.size_bytes() + kPiece - 1) / kPiece;
  const auto piece = [&](std::uint64_t index) {
    const std::size_t first = index * kPiece / 8;
    return words.subspan(first, std::min<std::size_t>(kPiece / 8, words.size() - first));
  };
  pool.parallel_for(n_pieces, [&](std::uint64_t index, int) { std::ranges::fill(piece(index), index); });
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(pool.n_threads()) * 8);  // one cache line per thread
  std::uint64_t wanted = 0;
  for (std::uint64_t index = 0; index < n_pieces; ++index) wanted += index * piece(index).size();
  Samples out;
  for (std::uint32_t rep = 0; rep < reps; ++rep) {
    std::ranges::fill(sums, 0);
    std::uint64_t n_passes = 0;
    double seconds = 0;
    const auto start = std::chrono::steady_clock::now();
    for (; seconds < kLeastSeconds; ++n_passes) {
      pool.parallel_for(n_pieces, [&](std::uint64_t index, int worker) {
        sums[static_cast<std::size_t>(worker) * 8] += sum_words(piece(index));
      });
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    // Because the sum is checked, the compiler cannot remove the reads.
    std::uint64_t sum = 0;
    for (const auto part : sums) sum += part;
    if (sum != n_passes * wanted) return fail(StatusCode::kInternal, "[bench] the memory's sum is wrong");
    out.values.push_back(static_cast<double>(n_passes * words.size_bytes()) / seconds / 1e9);
  }
  return out;
}

Result<std::optional<Int8Peak>> measure_int8_peak(const BenchResult& result) {
  const auto text = [&](const char* key) { return result.card.value(key, std::string()); };
  if (text("tier") != "t_cpu" || text("activations") != "int8") return std::nullopt;
  ZRT_TRY(const auto* set, ring::find_kernel_set(result.kernels));
  const auto products = ring::int8_products_of(*set);
  if (products == nullptr) return std::nullopt;
  ThreadPool pool(result.n_threads);
  Int8Peak peak{set->name, result.n_threads, {}};
  const auto n_items = static_cast<std::uint64_t>(result.n_threads) * 8;
  for (std::uint32_t rep = 0; rep < result.n_reps; ++rep) {
    std::atomic<std::uint64_t> n_products = 0;
    double seconds = 0;
    const auto start = std::chrono::steady_clock::now();
    while (seconds < kLeastSeconds) {
      pool.parallel_for(n_items, [&](std::uint64_t, int) { n_products += products(kRounds); });
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    peak.gop_per_s.values.push_back(2 * static_cast<double>(n_products) / seconds / 1e9);
  }
  return peak;
}

// The numbers from which a step's bytes and operations are computed. Layers with a window differ from other layers only
// in the window.
struct StepWork {
  double weight_bytes, kv_bytes_per_token, state_bytes, matrix_parameters, head_parameters;
  double attention_dim, n_attention, n_sliding, window;  // attention_dim: sum over all query heads of a layer
  bool has_experts;

  explicit StepWork(const nlohmann::ordered_json& card) {
    const auto number = [&](const char* key) { return card.value(key, 0.0); };
    weight_bytes = number("weight_bytes_read_per_token");
    kv_bytes_per_token = number("kv_bytes_per_token");
    state_bytes = 2 * number("state_bytes_per_slot");  // read and written
    head_parameters = number("vocab_size") * number("model_dim");
    matrix_parameters = std::max(0.0, number("n_active_parameters") - head_parameters);
    attention_dim = number("n_heads") * number("head_dim");
    n_attention = number("n_layers") - number("n_recurrent_layers");
    n_sliding = std::min(n_attention, number("n_sliding_layers"));
    window = number("sliding_window");
    has_experts = number("n_experts") > 0;
  }

  // Returns how many tokens a query at the end of a context attends to, averaged over the layers.
  double seen(double context) const {
    if (n_attention <= 0) return 0;
    return context - n_sliding / n_attention * std::max(0.0, context - window);
  }
  // Returns the operations for the scores and the weighted sum. Scores and weighted sum each take one multiplication
  // and one addition per element.
  double attention_ops(double context) const { return 4 * attention_dim * n_attention * seen(context); }
  double kv_bytes(double context) const { return kv_bytes_per_token * seen(context) + state_bytes; }
};

RooflineRow place_under_roof(const StepWork& work, const BenchRow& row) {
  RooflineRow out;
  const double rate = row.tokens_per_s.median();
  if (row.phase == BenchPhase::kPrefill) {
    out.step_ms = 1e3 * row.n_tokens / rate;
    out.matrix_gop =
        2 * (work.matrix_parameters * row.n_tokens + work.head_parameters) / 1e9;  // only the last token has logits
    double attention = 0;
    for (std::uint32_t token = 1; token <= row.n_tokens; ++token) attention += work.attention_ops(token);
    out.gop = out.matrix_gop + attention / 1e9;
  } else {
    const double context = row.context + row.n_tokens / 2.0, streams = row.n_streams;
    out.step_ms = 1e3 * streams / rate;
    // With several streams, the text determines which experts are read.
    if (!work.has_experts || row.n_streams == 1) out.weight_bytes = static_cast<std::uint64_t>(work.weight_bytes);
    out.kv_bytes = static_cast<std::uint64_t>(streams * work.kv_bytes(context));
    out.matrix_gop = streams * 2 * (work.matrix_parameters + work.head_parameters) / 1e9;
    out.gop = out.matrix_gop + streams * work.attention_ops(context) / 1e9;
    if (out.weight_bytes > 0) out.gb_per_s = static_cast<double>(out.weight_bytes + out.kv_bytes) / (out.step_ms * 1e6);
  }
  out.gop_per_s = 1e3 * out.gop / out.step_ms;
  return out;
}

}  // namespace

Result<Roofline> measure_roofline(const BenchResult& result) {
  Roofline out;
  const StepWork work(result.card);
  const auto own = std::max<std::uint64_t>(static_cast<std::uint64_t>(work.weight_bytes) / 8 * 8, 8);
  const std::uint64_t large = std::clamp(own, kLeastLarge, kMostLarge);
  std::vector<int> thread_counts{result.n_threads};
  if (result.n_threads > 1) thread_counts.push_back(1);
  for (const int n_threads : thread_counts) {
    ThreadPool pool(n_threads);
    for (const std::uint64_t bytes : {large, std::min(own, large)}) {
      const WordBuffer buffer(bytes);
      if (!buffer.is_there()) return fail(StatusCode::kExhausted, "[bench] no memory for {} bytes to read", bytes);
      ZRT_TRY(auto rates, read_rates(pool, buffer.words(), result.n_reps));
      out.rates.push_back({bytes, n_threads, std::move(rates)});
    }
  }
  ZRT_TRY(out.int8_peak, measure_int8_peak(result));
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    auto row = place_under_roof(work, result.rows[i]);
    row.row = i;
    row.of_large = row.gb_per_s / out.rates[0].gb_per_s.median();
    row.of_own_size = row.gb_per_s / out.rates[1].gb_per_s.median();
    if (out.int8_peak) row.of_int8_peak = 1e3 * row.matrix_gop / row.step_ms / out.int8_peak->gop_per_s.median();
    out.rows.push_back(row);
  }
  return out;
}

}  // namespace zinc_rt::tools
