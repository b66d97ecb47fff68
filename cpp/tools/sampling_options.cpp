#include "tools/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/near_name.h"
#include "base/read_number.h"
#include "model/weights.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

using Field = std::variant<float Request::*, std::uint32_t Request::*>;

struct Row {
  const char* name;
  const char* help;
  Field field;
  const char* key;      // of the model's file, after general.sampling.
  double in_chat, off;  // in conversations; where it does nothing
};

constexpr Row kRows[] = {
    {"temperature", "how freely it draws; 0: greedy", &Request::temperature, "temp", 0.7, 0},
    {"top_k", "keep the k most likely; 0: off", &Request::top_k, "top_k", 0, 0},
    {"top_p", "keep the most likely that reach this sum; 1: off", &Request::top_p, "top_p", 1, 1},
    {"min_p", "drop those below this part of the most likely; 0: off", &Request::min_p, "min_p", 0.05, 0},
    {"typical_p", "keep those of usual surprise up to this sum; 1: off", &Request::typical_p, "", 1, 1},
    {"repetition_penalty", "above 1: tokens that are there already are less likely; 1: off",
     &Request::repetition_penalty, "penalty_repeat", 1.05, 1},
    {"presence_penalty", "taken from generated tokens; 0: off", &Request::presence_penalty, "", 0, 0},
    {"frequency_penalty", "taken from generated tokens, each time they came; 0: off", &Request::frequency_penalty, "",
     0, 0},
};

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

double value_of(const Request& request, const Field& field) {
  return std::visit([&](auto member) { return static_cast<double>(request.*member); }, field);
}

void set_value(Request& request, const Field& field, double value) {
  std::visit(
      [&](auto member) { request.*member = static_cast<std::remove_reference_t<decltype(request.*member)>>(value); },
      field);
}

}  // namespace

void add_sampling_options(CLI::App& app, Request& request, std::set<std::string>& given) {
  constexpr const char* kGroup = "Sampling";
  for (const auto& row : kRows) {
    const auto flag = "--" + with_dashes(row.name);
    auto* option = std::visit([&](auto member) { return app.add_option(flag, request.*member, row.help); }, row.field);
    option->group(kGroup)->each([&given, name = row.name](const std::string&) { given.insert(name); });
  }
  app.add_option_function<std::uint64_t>(
         "--seed", [&request](const std::uint64_t& seed) { request.seed = seed; }, "same seed, same tokens")
      ->check(whole_number())
      ->group(kGroup);
}

void set_chat_sampling(Request& request, const std::set<std::string>& given) {
  for (const auto& row : kRows)
    if (!given.contains(row.name)) set_value(request, row.field, row.in_chat);
}

void set_chat_sampling(Request& request, const std::set<std::string>& given, const std::string& model_path) {
  const auto metadata = Weights::open_metadata(model_path);
  bool recommends = false;
  Request recommended;
  for (const auto& row : kRows) {
    if (!metadata || *row.key == '\0') continue;
    const auto value = metadata->get_float(fmt::format("general.sampling.{}", row.key));
    if (!value) continue;
    recommends = true;
    set_value(recommended, row.field, *value);
  }
  if (!recommends) return set_chat_sampling(request, given);
  for (const auto& row : kRows)
    if (!given.contains(row.name)) set_value(request, row.field, value_of(recommended, row.field));
}

Status set_sampling(Request& request, std::string_view name, std::string_view value) {
  std::string plain(name);
  std::ranges::replace(plain, '-', '_');
  const auto no_number = [&](const char* wanted) {
    return fail(StatusCode::kInvalidArgument, "{} {}: {} wanted", plain, value, wanted);
  };
  if (plain == "max_tokens") return read_number(value, request.max_tokens) ? Status{} : no_number("a whole number");
  if (plain == "seed") {
    std::uint64_t seed = 0;
    if (!read_number(value, seed)) return no_number("a whole number");
    request.seed = seed;
    return {};
  }
  for (const auto& row : kRows) {
    if (plain != row.name) continue;
    double number = 0;
    if (!read_number(value, number) || number < -1e6 || number > 1e6) return no_number("a number");
    if (std::holds_alternative<std::uint32_t Request::*>(row.field) && (number < 0 || number != std::uint32_t(number)))
      return no_number("a whole number");
    set_value(request, row.field, number);
    return {};
  }
  return fail(StatusCode::kInvalidArgument, "there is no setting \"{}\"{}", name,
              did_you_mean(plain, sampling_names()));
}

std::vector<std::string> sampling_names() {
  std::vector<std::string> names{"max_tokens", "seed"};
  for (const auto& row : kRows) names.emplace_back(row.name);
  return names;
}

std::string sampling_text(const Request& request) {
  std::string out = fmt::format("max_tokens {}", request.max_tokens);
  for (const auto& row : kRows)
    if (const auto value = value_of(request, row.field); value != row.off || &row == kRows)
      out += fmt::format(", {} {:g}", row.name, static_cast<float>(value));
  if (request.seed) out += fmt::format(", seed {}", *request.seed);
  return out;
}

}  // namespace zinc_rt::tools
