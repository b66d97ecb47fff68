#include "server/api/rerank.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "base/error.h"
#include "base/json_text.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

// Reads a string, or an object with a string in "text". Returns an empty text for any other value.
std::string text_of(const Json& value, bool may_be_object) {
  const bool is_object = may_be_object && value.is_object() && value.size() == 1 && value.contains("text");
  const Json& text = is_object ? value["text"] : value;
  return text.is_string() ? text.get<std::string>() : std::string();
}

// Reads the texts of a field: a list or, if `may_be_one`, a single text.
std::vector<std::string> read_texts(BodyReader& r, const char* field, bool may_be_one, bool may_be_object) {
  std::vector<std::string> texts;
  const Json* given = r.fields().get(field);
  if (given == nullptr) {
    r.wrong(field, "it is missing");
    return texts;
  }
  const auto add = [&](const std::string& place, const Json& one) {
    texts.push_back(text_of(one, may_be_object));
    if (texts.back().empty())
      r.wrong_entry(field, place,
                    fmt::format("{} is given, a text that is not empty wanted{}", show(one),
                                may_be_object ? ", or an object with one in \"text\" and no other field" : ""));
  };
  if (given->is_array() && !given->empty() && given->size() <= kMaxInputs)
    for (std::size_t i = 0; i < given->size(); ++i) add(fmt::format("{}[{}]", field, i), (*given)[i]);
  else if (given->is_array())
    r.wrong(field, fmt::format("{} texts, 1 to {} allowed", given->size(), kMaxInputs));
  else if (may_be_one)
    add(field, *given);
  else
    r.wrong(field, show(*given) + " is given, a list of texts wanted");
  return texts;
}

void begin(BodyReader& r, const Request& defaults, PairCall& call) {
  Request q = defaults;
  q.embed = true;
  q.max_tokens = 0;
  r.into(q.model, r.string("model", 4096));
  static_cast<void>(r.string("user", 1024));  // for the caller's own records; has no effect here
  call.requests.push_back(std::move(q));
}

std::string usage_json(const Usage& usage) {
  return fmt::format(R"({{"prompt_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
                     usage.prompt_tokens, usage.prompt_tokens, usage.cached_tokens);
}

std::string rerank_results(const PairCall& call, std::span<const double> scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return scores[i]; });
  if (call.top_n > 0 && call.top_n < order.size()) order.resize(call.top_n);
  std::string out;
  for (const std::size_t i : order) {
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"relevance_score":{})", out.empty() ? "" : ",", i,
                   scores[i]);
    if (call.returns_documents) out += R"(,"document":{"text":)" + json_string(call.second[i]) + "}";
    out += '}';
  }
  return out;
}

std::string score_data(std::span<const double> scores) {
  std::string out;
  for (std::size_t i = 0; i < scores.size(); ++i)
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"object":"score","score":{}}})", i == 0 ? "" : ",", i,
                   scores[i]);
  return out;
}

}  // namespace

ApiResult<PairCall> parse_rerank(const Json& body, const Request& defaults, Ignored ignored) {
  PairCall call;
  BodyReader r(body, ignored);
  begin(r, defaults, call);
  call.first.push_back(r.string("query", 64u << 20).value_or(""));
  if (call.first[0].empty()) r.wrong("query", "it is missing or empty");
  call.second = read_texts(r, "documents", false, true);
  r.into(call.top_n, r.integer("top_n", 1, INT32_MAX));
  r.into(call.returns_documents, r.boolean("return_documents"));
  ZRT_CHECK_OK(r.finish());
  return call;
}

ApiResult<PairCall> parse_score(const Json& body, const Request& defaults, Ignored ignored) {
  PairCall call;
  call.form = PairForm::kScore;
  BodyReader r(body, ignored);
  begin(r, defaults, call);
  call.first = read_texts(r, "text_1", true, false);
  call.second = read_texts(r, "text_2", true, false);
  if (call.first.size() != 1 && call.first.size() != call.second.size())
    r.wrong("text_2", fmt::format("{} texts for {} of text_1: as many wanted, or one text_1 for all",
                                  call.second.size(), call.first.size()));
  ZRT_CHECK_OK(r.finish());
  return call;
}

std::uint64_t pair_answer_bytes(const PairCall& call) {
  // The answer takes at most these bytes per result, and per byte of text.
  constexpr std::uint64_t kResult = 96, kEscape = 6;
  std::uint64_t bytes = 256 + kResult * call.second.size();
  if (call.returns_documents)
    for (const std::string& text : call.second) bytes += kEscape * text.size();
  return bytes;
}

std::string pair_answer(const PairCall& call, const EmbeddingAnswer& answer, std::span<const double> scores) {
  const auto model = json_string(answer.model), id = json_string(answer.id), usage = usage_json(answer.usage);
  if (call.form == PairForm::kRerank)
    return fmt::format(R"({{"id":{},"model":{},"results":[{}],"usage":{}}})", id, model, rerank_results(call, scores),
                       usage);
  return fmt::format(R"({{"id":{},"object":"list","created":{},"model":{},"data":[{}],"usage":{}}})", id,
                     static_cast<std::int64_t>(std::time(nullptr)), model, score_data(scores), usage);
}

}  // namespace zinc_rt::server
