// Prints and writes the results of `zinc-rt bench`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/bench.h"
#include "tools/table.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string row_name(const BenchRow& row) {
  switch (row.phase) {
    case BenchPhase::kPrefill: return fmt::format("{} tokens in {} steps", row.n_tokens, row.n_steps);
    case BenchPhase::kDecode: return fmt::format("1 stream of {} tokens", row.n_tokens);
    case BenchPhase::kBatch:
      return fmt::format("{} streams of {} tokens{}", row.n_streams, row.n_tokens,
                         row.context == kShortPrompt ? "" : fmt::format(" behind {}", row.context));
    case BenchPhase::kContext: return fmt::format("{} tokens at a context of {}", row.n_tokens, row.context);
  }
  return {};
}

Json samples_json(const Samples& samples) {
  return {{"median", samples.median()}, {"min", samples.min()}, {"max", samples.max()}, {"values", samples.values}};
}

std::string with_spread(const Samples& samples) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", samples.median(), samples.min(), samples.max());
}

std::string megabytes(std::uint64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

std::string percent(double part) {
  return part > 0 ? fmt::format("{:.0f}%", 100 * part) : "-";
}

// Returns lines that tell what was run: model, tier, settings.
std::vector<std::string> setting_lines(const BenchResult& result) {
  const auto text = [&](const char* key) { return result.card.value(key, std::string()); };
  return {
      fmt::format("zinc-rt {}: {} ({}, {} MB)", kVersion, text("name"), text("file"),
                  megabytes(result.card.value("file_bytes", std::uint64_t{0}))),
      fmt::format("tier {} ({}), arithmetic {}, activations {}, KV cache {}, fusion {}, at most {} tokens a step",
                  text("tier"), text("device"), text("arithmetic"), text("activations"), text("kv_dtype"),
                  text("fusion"), result.plan.value("chunk_cap", 0)),
      fmt::format("{} repetitions, medians; random token ids, greedy, end tokens ignored, prefix cache off; "
                  "clamps: {}",
                  result.n_reps, result.clamps.empty() ? "none" : fmt::format("{}", fmt::join(result.clamps, ", ")))};
}

Table speed_table(const BenchResult& result) {
  Table table{{"phase", "what", "tokens/s (min to max)"}};
  for (const auto& row : result.rows) {
    auto speed = with_spread(row.tokens_per_s);
    if (const double without = row.without_guesses.median(); without > 0)
      speed += fmt::format("; {:.2f} of {:.1f} without guesses", row.tokens_per_s.median() / without, without);
    table.push_back({to_string(row.phase), row_name(row), speed});
  }
  return table;
}

Table rate_table(const Roofline& roofline) {
  Table table{{"reading", "threads", "GB/s (min to max)"}};
  for (const auto& rate : roofline.rates)
    table.push_back(
        {fmt::format("{} MB", megabytes(rate.bytes)), std::to_string(rate.n_threads), with_spread(rate.gb_per_s)});
  return table;
}

Table peak_table(const Int8Peak& peak) {
  return {{"int8 multiply-adds", "threads", "GOP/s (min to max)"},
          {"kernels " + peak.kernels, std::to_string(peak.n_threads), with_spread(peak.gop_per_s)}};
}

Table roofline_table(const BenchResult& result, const Roofline& roofline) {
  Table table{{"phase", "what", "ms a step", "weights MB", "KV MB", "GB/s", "of own size", "of large", "GOP/s",
               "of int8 peak"}};
  for (const auto& r : roofline.rows) {
    const auto& row = result.rows[r.row];
    table.push_back({to_string(row.phase), row_name(row), fmt::format("{:.2f}", r.step_ms), megabytes(r.weight_bytes),
                     megabytes(r.kv_bytes), r.gb_per_s > 0 ? fmt::format("{:.1f}", r.gb_per_s) : "-",
                     percent(r.of_own_size), percent(r.of_large), fmt::format("{:.1f}", r.gop_per_s),
                     percent(r.of_int8_peak)});
  }
  return table;
}

constexpr const char* kRooflineNote =
    "A step of prefill is the whole prompt. Reading is a sum over a buffer; \"own size\" is one as large as the "
    "weights "
    "that a token reads, \"large\" at least 256 MB (of larger models their weights, at most 1 GiB), both with the "
    "engine's threads. The int8 peak is a loop of nothing but the kernel set's multiply-adds of bytes, on registers; "
    "its "
    "part counts the operations of the matrices alone, GOP/s attention too.";

std::string page(const BenchResult& result, const std::optional<Roofline>& roofline, bool markdown) {
  const auto render = markdown ? as_markdown : as_text;
  std::string out = render(speed_table(result));
  if (roofline)
    out += fmt::format("\n{}\n{}{}\n{}\n", render(rate_table(*roofline)),
                       roofline->int8_peak ? render(peak_table(*roofline->int8_peak)) + '\n' : "",
                       render(roofline_table(result, *roofline)), kRooflineNote);
  return out;
}

}  // namespace

const char* to_string(BenchPhase phase) {
  switch (phase) {
    case BenchPhase::kPrefill: return "prefill";
    case BenchPhase::kDecode: return "decode";
    case BenchPhase::kBatch: return "batch";
    case BenchPhase::kContext: return "context";
  }
  return "";
}

double Samples::median() const {
  if (values.empty()) return 0;
  auto sorted = values;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double Samples::min() const {
  return values.empty() ? 0 : *std::ranges::min_element(values);
}

double Samples::max() const {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}

std::string bench_text(const BenchResult& result, const std::optional<Roofline>& roofline) {
  return fmt::format("{}\n\n{}", fmt::join(setting_lines(result), "\n"), page(result, roofline, false));
}

std::string bench_markdown(const BenchResult& result, const std::optional<Roofline>& roofline) {
  return fmt::format("{}.\n\n{}", fmt::join(setting_lines(result), ".\n"), page(result, roofline, true));
}

Json bench_json(const BenchResult& result, const std::optional<Roofline>& roofline) {
  Json ran{{"version", kVersion}, {"model", result.card["name"]}};
  for (const char* key : {"file", "file_bytes", "tier", "device", "arithmetic", "activations", "kv_dtype", "fusion"})
    ran[key] = result.card[key];
  ran["threads"] = result.n_threads;
  for (const char* key : {"max_slots", "max_context", "chunk_cap"}) ran[key] = result.plan[key];
  ran["reps"] = result.n_reps;
  ran["clamps"] = result.clamps;
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    rows.push_back({{"phase", to_string(row.phase)},
                    {"streams", row.n_streams},
                    {"tokens", row.n_tokens},
                    {"context", row.context},
                    {"tokens_per_s", samples_json(row.tokens_per_s)}});
    if (row.phase == BenchPhase::kPrefill) rows.back()["steps"] = row.n_steps;
    if (!row.without_guesses.values.empty()) rows.back()["without_guesses"] = samples_json(row.without_guesses);
  }
  Json out{{"ran", ran}, {"rows", rows}};
  if (!roofline) return out;
  Json rates = Json::array(), under = Json::array();
  for (const auto& rate : roofline->rates)
    rates.push_back({{"bytes", rate.bytes}, {"threads", rate.n_threads}, {"gb_per_s", samples_json(rate.gb_per_s)}});
  for (const auto& r : roofline->rows)
    under.push_back({{"row", r.row},
                     {"step_ms", r.step_ms},
                     {"weight_bytes", r.weight_bytes},
                     {"kv_bytes", r.kv_bytes},
                     {"gop", r.gop},
                     {"gop_per_s", r.gop_per_s},
                     {"gb_per_s", r.gb_per_s},
                     {"of_own_size", r.of_own_size},
                     {"of_large", r.of_large},
                     {"matrix_gop", r.matrix_gop},
                     {"of_int8_peak", r.of_int8_peak}});
  out["roofline"] = {{"read_rates", rates}, {"rows", under}};
  if (const auto& peak = roofline->int8_peak)
    out["roofline"]["int8_peak"] = {
        {"kernels", peak->kernels}, {"threads", peak->n_threads}, {"gop_per_s", samples_json(peak->gop_per_s)}};
  return out;
}

}  // namespace zinc_rt::tools
