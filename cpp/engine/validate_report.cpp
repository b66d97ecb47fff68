#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "zinc_rt/validate.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

std::string bin_name(int power) {
  return fmt::format("1e{}", power);
}

std::string line(const Difference& d) {
  std::string bins;
  for (const auto& [power, count] : d.histogram) bins += fmt::format("  {}: {}", bin_name(power), count);
  return fmt::format("{:8} {:5} {:>21} {:>11} {:>11} {}\n", d.name,
                     d.n_different == 0 ? "yes"
                     : d.equal          ? "close"
                                        : "no",
                     fmt::format("{} of {}", d.n_different, d.n_values), fmt::format("{:.3g}", d.max_abs),
                     fmt::format("{:.3g}", d.mean_abs), bins);
}

// Returns a number as JSON. Infinity and NaN, which JSON lacks, become null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json row(const Difference& d) {
  Json bins = Json::object();
  for (const auto& [power, count] : d.histogram) bins[bin_name(power)] = count;
  return {{"name", d.name},
          {"layer", d.layer},
          {"equal", d.equal},
          {"n_values", d.n_values},
          {"n_different", d.n_different},
          {"max_abs", number(d.max_abs)},
          {"mean_abs", number(d.mean_abs)},
          {"histogram", bins}};
}

}  // namespace

std::string ValidateReport::to_text() const {
  std::string out =
      fmt::format("{} tokens\n  A  {}\n  B  {}\n{:8} {:5} {:>21} {:>11} {:>11}   |A - B| from: values\n",
                  token_ids.size(), sides[0], sides[1], "layer", "equal", "bits that differ", "max |A - B|", "mean");
  for (const auto& layer : layers) out += line(layer);
  out += line(logits);
  out += fmt::format("most likely token the same in {} of {} rows\n", n_same_top, n_rows);
  out += tolerance > 0 ? fmt::format("{} (tolerance {:g})\n", equal ? "EQUAL" : "DIFFERENT", tolerance)
                       : fmt::format("{} (bit by bit)\n", equal ? "EQUAL" : "DIFFERENT");
  return out;
}

std::string ValidateReport::to_json() const {
  Json rows = Json::array();
  for (const auto& layer : layers) rows.push_back(row(layer));
  const Json json{
      {"sides", sides}, {"token_ids", token_ids}, {"tolerance", tolerance}, {"equal", equal},
      {"layers", rows}, {"logits", row(logits)},  {"logit_rows", n_rows},   {"same_most_likely_token", n_same_top}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace zinc_rt
