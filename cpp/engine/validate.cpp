#include "zinc_rt/validate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/read_number.h"
#include "engine/core.h"
#include "engine/npz.h"
#include "model/weights.h"

namespace zinc_rt {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// Returns whether the option may be set for one side of the comparison, as in `t_cpu,threads=4`. Options of a model
// may; options of the engine may not.
bool is_of_side(const EngineOption& row) {
  return row.audience != EngineOption::Audience::kEngine && std::string_view(row.name) != "tier";
}

// Sets an option from a text such as "chunk_cap=7". In a list the separator is / instead of a comma, because commas
// separate the sides on the command line.
Status set_from_text(EngineOptions& options, std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto rows = engine_options();
  const auto row = std::ranges::find_if(
      rows, [&](const EngineOption& one) { return is_of_side(one) && text.substr(0, equals) == one.name; });
  if (row == rows.end())
    return fail(StatusCode::kInvalidArgument, "option \"{}\" is not one of {}", text.substr(0, equals),
                validate_side_options());
  std::string value(equals < text.size() ? text.substr(equals + 1) : "");
  std::ranges::replace(value, '/', ',');
  return set_option(options, *row, value);
}

// Returns the token ids of the run, from the source that the options name.
Result<std::vector<std::int32_t>> token_ids(const std::string& model, const ValidateOptions& options, const Npz* npz) {
  std::vector<std::int32_t> ids = options.token_ids;
  if (ids.empty() && !options.prompt.empty()) {
    ZRT_TRY(const auto weights, Weights::open(model));
    ZRT_TRY(const auto tokenizer, Tokenizer::from_metadata(weights.metadata()));
    ZRT_TRY(ids, tokenizer.encode(options.prompt, true, true));
  }
  if (npz != nullptr && npz->contains("prompt")) {
    ZRT_TRY(const auto stored, npz->integers("prompt"));
    std::vector<std::int32_t> wanted;
    for (const auto id : stored.values) wanted.push_back(static_cast<std::int32_t>(id));
    if (ids.empty()) ids = wanted;
    if (ids != wanted)
      return fail(StatusCode::kInvalidArgument,
                  "[validate] the prompt has {} tokens that are not the {} of the array \"prompt\"", ids.size(),
                  wanted.size());
  }
  if (ids.empty()) return fail(StatusCode::kInvalidArgument, "[validate] needs a prompt or token ids, none there");
  return ids;
}

// Side is one of the two sides that are compared. Its values come from an engine or from a file.
class Side {
 public:
  Result<bool> open(const std::string& model, const std::string& text, std::size_t n_tokens) {
    EngineOptions one_text;
    one_text.max_slots = 1;
    one_text.max_context = static_cast<std::uint32_t>(n_tokens);
    ZRT_TRY(const auto side, parse_validate_side(text, std::move(one_text)));
    ZRT_TRY(core_, EngineCore::open(model, side.options));
    ZRT_TRY(model_, core_->model({}));
    return true;
  }
  const ModelConfig& config() const { return model_->config(); }
  Result<std::vector<float>> hidden(std::span<const std::int32_t> ids, int layer) {
    return core_->hidden(*model_, ids, layer);
  }
  Result<std::vector<float>> logits(std::span<const std::int32_t> ids) {
    return core_->logits(*model_, ids, LogitsRows::kAll, 0);
  }

 private:
  std::shared_ptr<EngineCore> core_;
  std::shared_ptr<Model> model_;
};

std::string hidden_name(int layer) {
  return layer < 0 ? "hidden.embed" : fmt::format("hidden.{}", layer);
}

// Returns an array of the file. Errors: kInvalidArgument if its number of rows or its width is not the expected one.
Result<std::vector<float>> stored(const Npz& npz, const std::string& name, std::uint64_t rows, std::uint64_t width) {
  ZRT_TRY(auto array, npz.floats(name));
  if (array.shape.size() == 1) array.shape.insert(array.shape.begin(), 1);
  if (array.shape != std::vector{rows, width})
    return fail(StatusCode::kInvalidArgument, "[validate] array \"{}\": {} x {} values wanted, {} there", name, rows,
                width,
                array.shape.size() == 2 ? fmt::format("{} x {}", array.shape[0], array.shape[1])
                                        : fmt::format("{} dimensions", array.shape.size()));
  return std::move(array.values);
}

// Returns the token positions whose logits the file holds.
Result<std::vector<std::int64_t>> stored_positions(const Npz& npz, std::size_t n_tokens) {
  ZRT_TRY(const auto logits, npz.floats("logits"));
  const std::uint64_t rows = logits.shape.size() == 1 ? 1 : logits.shape.empty() ? 0 : logits.shape[0];
  std::vector<std::int64_t> positions;
  if (npz.contains("pos")) {
    ZRT_TRY(auto pos, npz.integers("pos"));
    positions = std::move(pos.values);
  } else if (rows == 1) {
    positions = {static_cast<std::int64_t>(n_tokens) - 1};
  } else {
    for (std::size_t i = 0; i < n_tokens; ++i) positions.push_back(static_cast<std::int64_t>(i));
  }
  if (positions.size() != rows || rows == 0)
    return fail(StatusCode::kInvalidArgument, "[validate] array \"logits\" has {} rows, {} positions there", rows,
                positions.size());
  for (const auto p : positions)
    if (p < 0 || p >= static_cast<std::int64_t>(n_tokens))
      return fail(StatusCode::kInvalidArgument, "[validate] array \"pos\": position {} of a prompt of {} tokens", p,
                  n_tokens);
  return positions;
}

int power_of_ten(double difference) {
  constexpr int kLeast = -12, kMost = 12;
  if (!(difference > 0)) return kLeast;
  return std::isfinite(difference) ? std::clamp(static_cast<int>(std::floor(std::log10(difference))), kLeast, kMost)
                                   : kMost;
}

std::uint64_t count_same_top(std::span<const float> a, std::span<const float> b, std::size_t width) {
  std::uint64_t same = 0;
  for (std::size_t at = 0; at < a.size(); at += width)
    same += std::ranges::max_element(a.subspan(at, width)) - a.begin() ==
            std::ranges::max_element(b.subspan(at, width)) - b.begin();
  return same;
}

}  // namespace

std::string validate_side_options() {
  std::string names;
  for (const EngineOption& row : engine_options())
    if (is_of_side(row)) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

Result<ValidateSide> parse_validate_side(std::string_view text, EngineOptions options) {
  const auto parts = split(text, '+');
  ValidateSide side{std::string(text), std::move(options)};
  side.options.tier = parts[0];
  if (parts[0].empty()) return fail(StatusCode::kInvalidArgument, "[validate] side \"{}\" names no tier", text);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (const auto set = set_from_text(side.options, parts[i]); !set)
      return fail(StatusCode::kInvalidArgument, "[validate] side \"{}\": {}", text, set.error().message);
  return side;
}

Result<std::vector<int>> parse_layers(std::string_view text, std::uint32_t n_layers) {
  const int last = static_cast<int>(n_layers) - 1;
  std::vector<int> layers;
  if (text == "none") return layers;
  for (const auto part : split(text == "all" ? "embed,all" : text, ',')) {
    int first = 0, end = last;
    if (part == "embed") {
      first = end = -1;
    } else if (part != "all" || text != "all") {
      const std::size_t dash = std::min(part.find('-'), part.size());
      if (!read_number(part.substr(0, dash), first) ||
          !read_number(dash < part.size() ? part.substr(dash + 1) : part, end) || first < 0 || end < first)
        return fail(StatusCode::kInvalidArgument,
                    "[validate] layers \"{}\": \"{}\" is no layer; all, none or a list such as embed,0,3,5-7 wanted",
                    text, part);
      if (end > last)
        return fail(StatusCode::kInvalidArgument, "[validate] layer {}, the model has 0 to {}", end, last);
    }
    for (int layer = first; layer <= end; ++layer) layers.push_back(layer);
  }
  std::ranges::sort(layers);
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  return layers;
}

Difference compare(std::span<const float> a, std::span<const float> b, double tolerance) {
  Difference d;
  d.n_values = a.size();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    ++d.n_different;
    double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(difference)) difference = INFINITY;
    ++d.histogram[power_of_ten(difference)];
    d.max_abs = std::max(d.max_abs, difference);
    sum += difference;
  }
  d.mean_abs = a.empty() ? 0 : sum / static_cast<double>(a.size());
  d.equal = d.n_different == 0 || (tolerance > 0 && d.max_abs <= tolerance);
  return d;
}

Result<ValidateReport> validate(const std::string& model, const ValidateOptions& options) {
  const std::size_t n_sides = options.against.empty() ? 2 : 1;
  if (options.tiers.size() != n_sides)
    return fail(StatusCode::kInvalidArgument, "[validate] needs {} tiers{}, {} there", n_sides,
                n_sides == 1 ? " beside the stored arrays" : "", options.tiers.size());
  if (!(options.tolerance >= 0))
    return fail(StatusCode::kInvalidArgument, "[validate] tolerance {}, at least 0 wanted", options.tolerance);
  std::optional<Npz> npz;
  if (n_sides == 1) {
    ZRT_TRY(npz, Npz::open(options.against));
  }
  ValidateReport report;
  ZRT_TRY(report.token_ids, token_ids(model, options, npz ? &*npz : nullptr));
  const std::span<const std::int32_t> ids = report.token_ids;
  report.tolerance = options.tolerance;
  report.sides = {options.tiers[0], npz ? options.against : options.tiers[1]};
  Side a, b;
  ZRT_CHECK_OK(a.open(model, options.tiers[0], ids.size()));
  if (!npz) ZRT_CHECK_OK(b.open(model, options.tiers[1], ids.size()));

  ZRT_TRY(auto layers, parse_layers(options.layers, a.config().n_layers));
  if (npz && options.layers == "all") std::erase_if(layers, [&](int l) { return !npz->contains(hidden_name(l)); });
  for (const int layer : layers) {
    if (options.is_stopped && options.is_stopped())
      return fail(StatusCode::kCancelled, "[validate] the call was taken back");
    ZRT_TRY(const auto ours, a.hidden(ids, layer));
    ZRT_TRY(const auto theirs,
            npz ? stored(*npz, hidden_name(layer), ids.size(), a.config().model_dim) : b.hidden(ids, layer));
    auto& row = report.layers.emplace_back(compare(ours, theirs, options.tolerance));
    row.layer = layer;
    row.name = layer < 0 ? "embed" : std::to_string(layer);
    report.equal = report.equal && row.equal;
  }

  const std::size_t vocab = a.config().vocab_size;
  ZRT_TRY(auto ours, a.logits(ids));
  std::vector<float> theirs;
  if (npz) {
    ZRT_TRY(const auto positions, stored_positions(*npz, ids.size()));
    ZRT_TRY(theirs, stored(*npz, "logits", positions.size(), vocab));
    std::vector<float> picked;
    for (const auto p : positions) {
      const auto row = ours.begin() + p * static_cast<std::ptrdiff_t>(vocab);
      picked.insert(picked.end(), row, row + static_cast<std::ptrdiff_t>(vocab));
    }
    ours = std::move(picked);
  } else {
    ZRT_TRY(theirs, b.logits(ids));
  }
  report.logits = compare(ours, theirs, options.tolerance);
  report.logits.layer = static_cast<int>(a.config().n_layers);
  report.logits.name = "logits";
  report.n_rows = ours.size() / vocab;
  report.n_same_top = count_same_top(ours, theirs, vocab);
  report.equal = report.equal && report.logits.equal;
  return report;
}

}  // namespace zinc_rt
