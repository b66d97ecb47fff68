#include "tools/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <variant>

#include "base/error.h"
#include "base/near_name.h"
#include "base/read_number.h"
#include "model/weights.h"
#include "tools/command.h"
#include "zinc_rt/request_fields.h"

namespace zinc_rt::tools {
namespace {

using Field = RequestField;
// Number is the member of Request that an option sets. Each of these options is a number.
using Number = std::variant<float Request::*, std::uint32_t Request::*>;

// The name that a model's file has for a number (after general.sampling.), and the value that conversations use if the
// file has none of these numbers.
struct InChat {
  Number member;
  const char* key;
  double value;
};

constexpr InChat kInChat[] = {{&Request::temperature, "temp", 0.7},
                              {&Request::top_k, "top_k", 0},
                              {&Request::top_p, "top_p", 1},
                              {&Request::min_p, "min_p", 0.05},
                              {&Request::repetition_penalty, "penalty_repeat", 1.05}};

bool is_of_commands(const Field& field) {
  return (field.taken_by & Field::kCommand) != 0;
}

auto fields() {
  return request_fields() | std::views::filter(is_of_commands);
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

Number number_of(const Field& field) {
  if (const auto* whole = std::get_if<std::uint32_t Request::*>(&field.member)) return *whole;
  return std::get<float Request::*>(field.member);
}

double value_of(const Request& request, const Number& number) {
  return std::visit([&](auto member) { return static_cast<double>(request.*member); }, number);
}

void set_value(Request& request, const Number& number, double value) {
  std::visit(
      [&](auto member) { request.*member = static_cast<std::remove_reference_t<decltype(request.*member)>>(value); },
      number);
}

// Copies the values of `from` for which the user gave no option.
void take_over(Request& request, const Request& from, const std::set<std::string>& given) {
  for (const Field& field : fields())
    if (!given.contains(field.name)) set_value(request, number_of(field), value_of(from, number_of(field)));
}

}  // namespace

void add_sampling_options(CLI::App& app, Request& request, std::set<std::string>& given) {
  constexpr const char* kGroup = "Sampling";
  for (const Field& field : fields()) {
    const auto flag = "--" + with_dashes(field.name);
    auto* option =
        std::visit([&](auto member) { return app.add_option(flag, request.*member, field.help); }, number_of(field));
    option->group(kGroup)->each([&given, name = field.name](const std::string&) { given.insert(name); });
  }
  app.add_option_function<std::uint64_t>(
         "--seed", [&request](const std::uint64_t& seed) { request.seed = seed; }, "same seed, same tokens")
      ->check(whole_number())
      ->group(kGroup);
}

void set_chat_sampling(Request& request, const std::set<std::string>& given) {
  Request usual;
  for (const InChat& one : kInChat) set_value(usual, one.member, one.value);
  take_over(request, usual, given);
}

void set_chat_sampling(Request& request, const std::set<std::string>& given, const std::string& model_path) {
  const auto metadata = Weights::open_metadata(model_path);
  bool recommends = false;
  Request recommended;
  for (const InChat& one : kInChat) {
    if (!metadata) continue;
    const auto value = metadata->get_float(fmt::format("general.sampling.{}", one.key));
    if (!value) continue;
    recommends = true;
    set_value(recommended, one.member, *value);
  }
  if (!recommends) return set_chat_sampling(request, given);
  take_over(request, recommended, given);
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
  for (const Field& field : fields()) {
    if (plain != field.name) continue;
    double number = 0;
    if (!read_number(value, number) || number < -1e6 || number > 1e6) return no_number("a number");
    if (std::holds_alternative<std::uint32_t Request::*>(field.member) &&
        (number < 0 || number != std::uint32_t(number)))
      return no_number("a whole number");
    set_value(request, number_of(field), number);
    return {};
  }
  return fail(StatusCode::kInvalidArgument, "there is no setting \"{}\"{}", name,
              did_you_mean(plain, sampling_names()));
}

std::vector<std::string> sampling_names() {
  std::vector<std::string> names{"max_tokens", "seed"};
  for (const Field& field : fields()) names.emplace_back(field.name);
  return names;
}

std::string sampling_text(const Request& request) {
  std::string out = fmt::format("max_tokens {}", request.max_tokens);
  const Request off;
  for (const Field& field : fields())
    if (const auto value = value_of(request, number_of(field));
        value != value_of(off, number_of(field)) || &field == &fields().front())
      out += fmt::format(", {} {:g}", field.name, static_cast<float>(value));
  if (request.seed) out += fmt::format(", seed {}", *request.seed);
  return out;
}

}  // namespace zinc_rt::tools
