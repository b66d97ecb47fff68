// The part of `zinc-rt bench` that runs with --kv-quality: measures how much quality each type of KV cache loses, on a
// text that is embedded in the program.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/kv_type.h"
#include "base/print.h"
#include "tools/bench.h"
#include "tools/table.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kQualityWindow = 2048;     // number of tokens in a window; each window is computed on its own
constexpr std::uint32_t kLeastQualityWindow = 64;  // tokens; a shorter rest of the text is not used
constexpr std::string_view kExactCache = "f32";    // the type that the others are compared with
constexpr std::string_view kUsualCache = "f16";    // the type whose bytes are shown as 100%

struct QualityRow {
  std::string kv_dtype;
  std::uint64_t bytes_per_token = 0;
  double perplexity = 0;
  double change = 0;        // change of the perplexity, relative to that with the exact cache
  double change_error = 0;  // standard error of the change, computed from its variation over the tokens
  double kl = 0;            // mean over tokens of KL(exact || this), in nats
  double top1 = 0;          // fraction of the tokens whose most likely successor is the same as with the exact cache
};
struct Quality {
  Json card;
  std::uint32_t n_tokens = 0;  // tokens that were predicted
  std::vector<QualityRow> rows;
};

// Returns the logarithm of the sum of e^x over a row.
double log_sum(std::span<const float> row) {
  const double max = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(x - max);
  return max + std::log(sum);
}

struct QualitySums {
  // `lost` is how much log likelihood is lost compared with the exact cache.
  double log_likelihood = 0, kl = 0, lost = 0, lost_squares = 0;
  std::uint32_t n = 0, n_same = 0;

  void add(std::span<const float> wanted, std::span<const float> found, std::int32_t next) {
    const double wanted_sum = log_sum(wanted), found_sum = log_sum(found);
    const auto token = static_cast<std::size_t>(next);
    const double likelihood = found[token] - found_sum, difference = wanted[token] - wanted_sum - likelihood;
    log_likelihood += likelihood;
    lost += difference;
    lost_squares += difference * difference;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double log_p = wanted[i] - wanted_sum;
      kl += std::exp(log_p) * (log_p - (found[i] - found_sum));
    }
    ++n;
    n_same += std::ranges::max_element(wanted) - wanted.begin() == std::ranges::max_element(found) - found.begin();
  }
};

QualityRow row_of(const std::string& kv_dtype, std::uint64_t bytes_per_token, const QualitySums& sums) {
  const double n = sums.n, mean = sums.lost / n;
  return {.kv_dtype = kv_dtype,
          .bytes_per_token = bytes_per_token,
          .perplexity = std::exp(-sums.log_likelihood / n),
          .change = std::exp(mean) - 1,
          .change_error = std::exp(mean) * std::sqrt(std::max(0.0, sums.lost_squares / n - mean * mean) / n),
          .kl = sums.kl / n,
          .top1 = sums.n_same / n};
}

Result<Engine> open_with_cache(const ModelOptions& model, std::string_view kv_dtype) {
  ModelOptions with = model;
  with.engine.kv_dtype = kv_dtype;
  with.engine.max_slots = 1;
  with.engine.prefix_cache = false;
  return open_engine(with);
}

Result<std::vector<std::span<const std::int32_t>>> windows_of(std::span<const std::int32_t> ids,
                                                              std::uint32_t context) {
  const std::size_t window = std::min(kQualityWindow, context);
  std::vector<std::span<const std::int32_t>> windows;
  for (std::size_t at = 0; at < ids.size(); at += window) {
    const auto part = ids.subspan(at, std::min(window, ids.size() - at));
    if (part.size() >= kLeastQualityWindow) windows.push_back(part);
  }
  if (windows.empty())
    return fail(StatusCode::kInvalidArgument, "[bench] a context of {} tokens, at least {} wanted", context,
                kLeastQualityWindow);
  return windows;
}

using Window = std::span<const std::int32_t>;

// Returns the logits of all rows, one list per window.
Result<std::vector<std::vector<float>>> logits_of(Engine& engine, const std::vector<Window>& windows,
                                                  std::string_view name, const StatusLine& status) {
  std::vector<std::vector<float>> logits;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    status.show(fmt::format("{}: part {} of {}", name, w + 1, windows.size()));
    ZRT_TRY(auto rows, engine.logits(windows[w], LogitsRows::kAll));
    logits.push_back(std::move(rows));
  }
  return logits;
}

// Measures each cache type, and also the exact type against itself. Only one engine is open at a time, and each engine
// runs once.
Result<Quality> measure_quality(const BenchOptions& o) {
  std::vector<std::string> types{std::string(kExactCache), std::string(kUsualCache)};
  for (const auto& name : o.kv_quality)
    if (std::ranges::find(types, name) == types.end()) types.push_back(name);
  const StatusLine status(o.model.progress);
  Quality quality;
  std::vector<std::int32_t> ids;
  std::vector<Window> windows;
  std::vector<std::vector<float>> wanted;
  for (const auto& name : types) {
    ZRT_TRY(auto engine, open_with_cache(o.model, name));
    ZRT_TRY(const auto card, engine.model_card());
    const bool is_first = wanted.empty();
    if (is_first) {
      quality.card = Json::parse(to_json(card));
      ZRT_TRY(const auto plan, engine.memory_plan());
      ZRT_TRY(ids, engine.tokenize(kProse));
      ZRT_TRY(windows, windows_of(ids, plan.max_context));
    }
    ZRT_TRY(auto logits, logits_of(engine, windows, name, status));
    if (is_first) wanted = std::move(logits);
    const auto& found = is_first ? wanted : logits;
    const std::size_t vocab = engine.vocab_size();
    QualitySums sums;
    for (std::size_t w = 0; w < windows.size(); ++w)
      for (std::size_t i = 0; i + 1 < windows[w].size(); ++i)
        sums.add(std::span(wanted[w]).subspan(i * vocab, vocab), std::span(found[w]).subspan(i * vocab, vocab),
                 windows[w][i + 1]);
    quality.n_tokens = sums.n;
    quality.rows.push_back(row_of(name, card.kv_bytes_per_token, sums));
  }
  return quality;
}

std::string quality_page(const Quality& quality, bool markdown) {
  const QualityRow& usual = *std::ranges::find(quality.rows, kUsualCache, &QualityRow::kv_dtype);
  Table table{{"KV cache", "bytes/token", "of f16", "perplexity", "change", "KL to f32", "same first token"}};
  for (const QualityRow& row : quality.rows)
    table.push_back({row.kv_dtype, std::to_string(row.bytes_per_token),
                     fmt::format("{:.0f}%", 100.0 * static_cast<double>(row.bytes_per_token) /
                                                static_cast<double>(usual.bytes_per_token)),
                     fmt::format("{:.3f}", row.perplexity),
                     fmt::format("{:+.2f}% +- {:.2f}", 100 * row.change, 100 * row.change_error),
                     row.kl < 0.0005 ? fmt::format("{:.1e}", row.kl) : fmt::format("{:.4f}", row.kl),
                     fmt::format("{:.1f}%", 100 * row.top1)});
  return fmt::format("{}: {} tokens of prose, windows of at most {}{}\n\n{}", quality.card.value("name", std::string()),
                     quality.n_tokens, kQualityWindow, markdown ? "." : "", (markdown ? as_markdown : as_text)(table));
}

Json quality_json(const Quality& quality) {
  Json ran{{"model", quality.card["name"]}};
  for (const char* key : {"file", "tier", "arithmetic", "activations"}) ran[key] = quality.card[key];
  ran["tokens"] = quality.n_tokens;
  ran["window"] = kQualityWindow;
  Json rows = Json::array();
  for (const QualityRow& row : quality.rows)
    rows.push_back({{"kv_dtype", row.kv_dtype},
                    {"bytes_per_token", row.bytes_per_token},
                    {"perplexity", row.perplexity},
                    {"change", row.change},
                    {"change_error", row.change_error},
                    {"kl", row.kl},
                    {"top1", row.top1}});
  return {{"ran", ran}, {"kv_quality", rows}};
}

}  // namespace

Status bench_kv_quality(const BenchOptions& o) {
  for (const auto& name : o.kv_quality)
    if (find_kv_type(name) == nullptr)
      return fail(StatusCode::kInvalidArgument, "[bench] --kv-quality {}: not one of {}", name,
                  fmt::join(kv_type_names(), ", "));
  ZRT_TRY(const auto quality, measure_quality(o));
  print_out("{}", quality_page(quality, false));
  ZRT_CHECK_OK(
      write_whole(o.json_path, quality_json(quality).dump(2, ' ', false, Json::error_handler_t::replace) + '\n'));
  return write_whole(o.markdown_path, quality_page(quality, true));
}

}  // namespace zinc_rt::tools
