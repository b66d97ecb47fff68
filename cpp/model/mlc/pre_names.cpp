#include "model/mlc/pre_names.h"

#include <algorithm>

#include "base/error.h"
#include "model/gguf/metadata.h"

namespace zinc_rt::mlc {
namespace {

constexpr std::string_view kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kTekken =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// Several rows may differ only in their name. Then pre_of_json() returns the first of them.
constexpr PreRow kRows[] = {
    {"gpt-2", "", false, false, false},        {"mpt", "", false, false, false},
    {"olmo", "", false, false, false},         {"smollm", "", true, false, false},
    {"starcoder", "", true, false, false},     {"refact", "", true, false, false},
    {"llama-bpe", kLlama3, false, true, true}, {"llama3", kLlama3, false, true, true},
    {"llama-v3", kLlama3, false, true, true},  {"tekken", kTekken, false, true, true},
};

// Steps holds the combined effect of the steps of a pre_tokenizer object. read_step() adds one step at a time.
struct Steps {
  std::string regex;
  bool digits_alone = false, bytes = false, own_regex = false;
};

Status read_step(const Json& value, const std::string& place, Steps& steps) {
  ZRT_TRY(const Fields step, Fields::of(value, place));
  ZRT_TRY(const std::string name, step.string("type"));
  const std::string_view type = name;
  if (type == "Sequence") {
    ZRT_TRY(const Json* inner, step.array("pretokenizers"));
    for (const Json& one : *inner) ZRT_CHECK_OK(read_step(one, place, steps));
    return {};
  }
  bool known = !steps.bytes;  // no step may follow ByteLevel
  if (type == "Digits") {
    ZRT_TRY(const bool alone, step.flag_or("individual_digits", false));
    known = known && alone && steps.regex.empty();
    steps.digits_alone = true;
  } else if (type == "Split") {
    ZRT_TRY(const Fields pattern, step.object("pattern"));
    ZRT_TRY(const std::string regex, pattern.string("Regex"));
    ZRT_TRY(const std::string behavior, step.string_or("behavior", "Isolated"));
    ZRT_TRY(const bool invert, step.flag_or("invert", false));
    known = known && behavior == "Isolated" && !invert && steps.regex.empty() && !steps.digits_alone;
    steps.regex = regex;
  } else if (type == "ByteLevel") {
    ZRT_TRY(const bool prefix, step.flag_or("add_prefix_space", false));
    ZRT_TRY(steps.own_regex, step.flag_or("use_regex", true));
    known = known && !prefix;
    steps.bytes = true;
  } else {
    known = false;
  }
  if (!known)
    return fail(StatusCode::kUnavailable, "[mlc] {}: the step {} is not supported there: {}", place, gguf::quoted(type),
                gguf::quoted(value.dump(-1, ' ', true)));
  return {};
}

}  // namespace

Result<const PreRow*> pre_of_name(std::string_view name) {
  std::string known;
  for (const PreRow& row : kRows) {
    if (row.name == name) return &row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return fail(StatusCode::kUnavailable, "[mlc] tokenizer.ggml.pre {} has no form in tokenizer.json here; known: {}",
              gguf::quoted(name), known);
}

Result<const PreRow*> pre_of_json(const Json* pre_tokenizer, const std::string& place) {
  const std::string at = place + ": pre_tokenizer";
  if (pre_tokenizer == nullptr) return fail(StatusCode::kUnavailable, "[mlc] {}: needs ByteLevel, nothing there", at);
  Steps steps;
  ZRT_CHECK_OK(read_step(*pre_tokenizer, at, steps));
  const bool has_regex = !steps.regex.empty();
  for (const PreRow& row : kRows)
    if (steps.bytes && steps.own_regex != has_regex && row.regex == steps.regex &&
        row.digits_alone == steps.digits_alone)
      return &row;
  return fail(StatusCode::kUnavailable, "[mlc] {}: not supported: {}", at,
              gguf::quoted(pre_tokenizer->dump(-1, ' ', true)));
}

Json json_of_pre(const PreRow& row) {
  const Json bytes{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", row.regex.empty()}};
  if (row.regex.empty() && !row.digits_alone) return bytes;
  Json steps = Json::array();
  if (row.digits_alone) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!row.regex.empty())
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", std::string(row.regex)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back(bytes);
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

}  // namespace zinc_rt::mlc
