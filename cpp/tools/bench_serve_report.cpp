// Prints and writes the results of `zinc-rt bench serve`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/bench_serve.h"
#include "tools/table.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;

// Returns the nearest-rank quantile; 0 if there are no values. REQUIRES: the values are sorted.
double quantile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(p * static_cast<double>(sorted.size())))];
}

// ServeSums holds the numbers of the report about one tenant, or about all tenants together.
struct ServeSums {
  std::string name;
  std::uint64_t n = 0, n_ok = 0, n_dropped = 0, n_failed = 0;
  std::map<std::string, std::uint64_t> failures;  // key: the status
  // Key: the status of failed requests; value: the first error message with this status.
  std::map<std::string, std::string> words;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::vector<double> ttft_ms, gap_ms, whole_ms;  // sorted
};

ServeSums sum_up(const ServeBenchResult& result, std::string name, const std::uint32_t* tenant) {
  ServeSums out;
  out.name = std::move(name);
  for (const auto& s : result.samples) {
    if (tenant != nullptr && s.tenant != *tenant) continue;
    ++out.n;
    out.n_ok += s.how == ServeSample::kOk;
    out.n_dropped += s.how == ServeSample::kDropped;
    out.n_failed += s.how == ServeSample::kFailed;
    if (s.how == ServeSample::kFailed) {
      ++out.failures[s.status];
      out.words.try_emplace(s.status, s.words);
    }
    out.prompt_tokens += s.prompt_tokens;
    out.cached_tokens += s.cached_tokens;
    out.output_tokens += s.output_tokens;
    if (!s.pieces_s.empty()) out.ttft_ms.push_back(first_piece_ms(s));
    for (std::size_t i = 1; i < s.pieces_s.size(); ++i) out.gap_ms.push_back((s.pieces_s[i] - s.pieces_s[i - 1]) * 1e3);
    if (s.how == ServeSample::kOk) out.whole_ms.push_back((s.end_s - s.asked_s) * 1e3);
  }
  for (auto* list : {&out.ttft_ms, &out.gap_ms, &out.whole_ms}) std::ranges::sort(*list);
  return out;
}

std::vector<ServeSums> tenants_sums(const ServeBenchResult& result) {
  std::vector<ServeSums> out;
  for (std::uint32_t t = 0; t < result.options.tenants.size(); ++t)
    out.push_back(sum_up(result, result.options.tenants[t].name, &t));
  return out;
}

// Returns Jain's index of the tenants' output tokens: 1 if all n tenants got the same number, 1/n if one tenant got all
// tokens.
double fairness(const std::vector<ServeSums>& tenants) {
  double sum = 0, squares = 0;
  for (const auto& t : tenants) {
    const auto x = static_cast<double>(t.output_tokens);
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(tenants.size()) * squares) : 0;
}

std::string range_text(const TokenRange& r) {
  return r.low == r.high ? std::to_string(r.low) : fmt::format("{} to {}", r.low, r.high);
}

std::string load_text(const ServeTenant& t) {
  return fmt::format("{}{}{}, prompts of {} and answers of at most {} tokens",
                     t.rate > 0 ? fmt::format("{} requests/s, Poisson", t.rate) : fmt::format("{} clients", t.clients),
                     t.n_requests > 0 ? fmt::format(", {} requests", t.n_requests) : "",
                     t.start_s > 0 ? fmt::format(", from {} s on", t.start_s) : "", range_text(t.prompt),
                     range_text(t.output));
}

std::vector<std::string> serve_setting_lines(const ServeBenchResult& result) {
  const auto& o = result.options;
  std::vector<std::string> out{
      fmt::format("zinc-rt {} bench serve: {} of {} at {}, seed {}", kVersion, o.api, o.model, o.url, o.seed)};
  for (const auto& t : o.tenants) out.push_back(fmt::format("{}: {}", t.name, load_text(t)));
  if (o.shared_prefix > 0)
    out.push_back(fmt::format("before each prompt {} tokens, for {:.0f}% of the requests the same", o.shared_prefix,
                              100 * o.shared_part));
  if (o.drop_part > 0) out.push_back(fmt::format("{:.0f}% of the requests are to hang up", 100 * o.drop_part));
  if (!o.extra_body.empty()) out.push_back("in each request: " + o.extra_body.dump());
  if (result.tokens_per_word == 0) out.emplace_back("the server counts no tokens: lengths of prompts are words");
  if (result.is_cut_short) out.emplace_back("cut short by Ctrl-C");
  return out;
}

Table serve_table(const ServeBenchResult& result, const std::vector<ServeSums>& rows) {
  Table table{{"tenant", "requests", "ok", "hung up", "failed", "TTFT ms p50, p90, p99", "gap ms p50, p99, worst",
               "prompt tokens (cached)", "output tokens", "tokens/s"}};
  for (const auto& r : rows)
    table.push_back({r.name, std::to_string(r.n), std::to_string(r.n_ok), std::to_string(r.n_dropped),
                     std::to_string(r.n_failed),
                     fmt::format("{:.1f}, {:.1f}, {:.1f}", quantile(r.ttft_ms, 0.5), quantile(r.ttft_ms, 0.9),
                                 quantile(r.ttft_ms, 0.99)),
                     fmt::format("{:.1f}, {:.1f}, {:.1f}", quantile(r.gap_ms, 0.5), quantile(r.gap_ms, 0.99),
                                 quantile(r.gap_ms, 1)),
                     fmt::format("{} ({})", r.prompt_tokens, r.cached_tokens), std::to_string(r.output_tokens),
                     fmt::format("{:.1f}", static_cast<double>(r.output_tokens) / std::max(result.wall_s, 1e-9))});
  return table;
}

Json times_json(const std::vector<double>& sorted) {
  if (sorted.empty()) return nullptr;
  return {{"n", sorted.size()},
          {"p50", quantile(sorted, 0.5)},
          {"p90", quantile(sorted, 0.9)},
          {"p99", quantile(sorted, 0.99)},
          {"max", sorted.back()}};
}

Json sums_json(const ServeBenchResult& result, const ServeSums& s) {
  const double wall = std::max(result.wall_s, 1e-9);
  return {{"name", s.name},
          {"requests", s.n},
          {"ok", s.n_ok},
          {"hung_up", s.n_dropped},
          {"failed", s.n_failed},
          {"failures", s.failures},
          {"errors", s.words},
          {"ttft_ms", times_json(s.ttft_ms)},
          {"gap_ms", times_json(s.gap_ms)},
          {"request_ms", times_json(s.whole_ms)},
          {"prompt_tokens", s.prompt_tokens},
          {"cached_tokens", s.cached_tokens},
          {"output_tokens", s.output_tokens},
          {"output_tokens_per_s", static_cast<double>(s.output_tokens) / wall},
          {"requests_per_s", static_cast<double>(s.n_ok) / wall}};
}

Json load_json(const ServeTenant& t) {
  Json out{{"name", t.name}};
  if (t.rate > 0)
    out["rate"] = t.rate;
  else
    out["clients"] = t.clients;
  out["requests"] = t.n_requests;
  out["start_s"] = t.start_s;
  out["prompt"] = {t.prompt.low, t.prompt.high};
  out["output"] = {t.output.low, t.output.high};
  return out;
}

}  // namespace

double first_piece_ms(const ServeSample& sample) {
  return sample.pieces_s.empty() ? -1 : (sample.pieces_s.front() - sample.asked_s) * 1e3;
}

std::string serve_bench_text(const ServeBenchResult& result, bool markdown) {
  auto rows = tenants_sums(result);
  const double index = fairness(rows);
  const bool has_several = rows.size() > 1;
  auto all = sum_up(result, "all", nullptr);
  std::string out =
      fmt::format("{}{}\n\n", fmt::join(serve_setting_lines(result), markdown ? ".\n" : "\n"), markdown ? "." : "");
  std::string below = fmt::format("\n{:.1f} s", result.wall_s);
  if (has_several) below += fmt::format("; fairness of output tokens (Jain's index): {:.3f}", index);
  below += '\n';
  for (const auto& [status, n] : all.failures)
    below += fmt::format("{}{} x {}: {}\n", markdown ? "- " : "", n, status, all.words[status]);
  if (has_several) rows.push_back(std::move(all));
  const auto table = serve_table(result, rows);
  return out + (markdown ? as_markdown(table) : as_text(table)) + below;
}

Json serve_bench_json(const ServeBenchResult& result) {
  const auto& o = result.options;
  Json loads = Json::array(), tenants = Json::array(), requests = Json::array();
  for (const auto& t : o.tenants) loads.push_back(load_json(t));
  const auto rows = tenants_sums(result);
  for (const auto& row : rows) tenants.push_back(sums_json(result, row));
  for (const auto& s : result.samples) {
    requests.push_back({{"tenant", o.tenants[s.tenant].name},
                        {"asked_s", s.asked_s},
                        {"ttft_ms", s.pieces_s.empty() ? Json(nullptr) : Json(first_piece_ms(s))},
                        {"ms", (s.end_s - s.asked_s) * 1e3},
                        {"status", s.status},
                        {"prompt_tokens", s.prompt_tokens},
                        {"cached_tokens", s.cached_tokens},
                        {"output_tokens", s.output_tokens}});
  }
  return {{"ran",
           {{"version", kVersion},
            {"url", o.url},
            {"api", o.api},
            {"model", o.model},
            {"seed", o.seed},
            {"duration_s", o.duration_s},
            {"timeout_s", o.timeout_s},
            {"shared_prefix", o.shared_prefix},
            {"shared_part", o.shared_part},
            {"drop_part", o.drop_part},
            {"ignore_eos", o.ignore_eos},
            {"extra_body", o.extra_body},
            {"tokens_per_word", result.tokens_per_word},
            {"is_cut_short", result.is_cut_short},
            {"tenants", loads}}},
          {"wall_s", result.wall_s},
          {"fairness", fairness(rows)},
          {"total", sums_json(result, sum_up(result, "all", nullptr))},
          {"tenants", tenants},
          {"requests", requests}};
}

}  // namespace zinc_rt::tools
