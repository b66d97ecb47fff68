#include "server/api/embedding.h"

#include <bit>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_text.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

// A float in an answer takes at most this many bytes with its comma, such as -1.17549435e-38.
constexpr std::size_t kMostNumberBytes = 16;

void put_base64(std::string& out, std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "the answer's floats are little endian");
  out += to_base64({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

// Appends the numbers as a JSON list. Each number has the fewest digits from which the same float32 can be read.
void put_numbers(std::string& out, std::span<const float> values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", values[i]);
  out += ']';
}

// Makes one request per input. The field is a text, a list of token ids, a list of texts, or a list of lists of token
// ids.
void read_inputs(BodyReader& r, const char* field, const Request& q, EmbeddingCall& call) {
  const Json* input = r.fields().get(field);
  if (input == nullptr) return r.wrong(field, "it is missing");
  const auto add = [&](const std::string& place, const Json& one) {
    Request request = q;
    if (one.is_string() && !one.get_ref<const std::string&>().empty())
      request.prompt = one.get<std::string>();
    else if (one.is_array() && !one.empty() && one.size() <= kMaxIds)
      request.token_ids = ids_of(one);
    if (request.prompt || request.token_ids)
      call.requests.push_back(std::move(request));
    else
      r.wrong_entry(field, place,
                    show(one) +
                        " is given; a text that is not empty, a list of token ids, or a list of "
                        "those wanted");
  };
  const bool is_list = input->is_array() && !input->empty() && !is_json_number((*input)[0]);
  if (is_list && input->size() > kMaxInputs)
    return r.wrong(field, fmt::format("{} inputs, at most {} allowed", input->size(), kMaxInputs));
  if (is_list)
    for (std::size_t i = 0; i < input->size(); ++i) add(fmt::format("{}[{}]", field, i), (*input)[i]);
  else
    add(field, *input);
}

Request embedding_request(const Request& defaults) {
  Request q = defaults;
  q.embed = true;
  q.max_tokens = 0;
  return q;
}

// Reads the fields that both of Ollama's bodies have. Options about generation have no effect here.
void read_ollama(BodyReader& r, Request& q, EmbeddingCall& call) {
  read_ollama_model(r, q);
  Request generating;
  GenerationCall options;
  read_ollama_options(r, options, generating);
  call.wanted_context = options.wanted_context;
  static_cast<void>(read_keep_alive(r));
}

void put_data(std::string& out, EmbeddingForm form, const std::vector<std::vector<float>>& embeddings) {
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":)", i == 0 ? "" : ",",
                   i);
    if (form == EmbeddingForm::kBase64) {
      out += '"';
      put_base64(out, embeddings[i]);
      out += '"';
    } else {
      put_numbers(out, embeddings[i]);
    }
    out += '}';
  }
}

}  // namespace

ApiResult<EmbeddingCall> parse_embedding(const Json& body, const Request& defaults, Ignored ignored) {
  EmbeddingCall call;
  Request q = embedding_request(defaults);
  BodyReader r(body, ignored);
  r.into(q.model, r.string("model", 4096));
  if (const auto format = r.take(r.fields().get_choice("encoding_format", {"float", "base64"})))
    if (*format == "base64") call.form = EmbeddingForm::kBase64;
  r.into(q.dimensions, r.integer("dimensions", 1, INT32_MAX));
  static_cast<void>(r.string("user", 1024));  // for the caller's own records; has no effect here
  read_inputs(r, "input", q, call);
  ZRT_CHECK_OK(r.finish());
  return call;
}

ApiResult<EmbeddingCall> parse_ollama_embed(const Json& body, const Request& defaults, Ignored ignored) {
  EmbeddingCall call;
  call.form = EmbeddingForm::kOllama;
  Request q = embedding_request(defaults);
  BodyReader r(body, ignored);
  read_ollama(r, q, call);
  r.into(q.dimensions, r.integer("dimensions", 1, INT32_MAX));
  // `truncate` has no effect: a text that is too long is an error and is never truncated.
  static_cast<void>(r.boolean("truncate"));
  read_inputs(r, "input", q, call);
  ZRT_CHECK_OK(r.finish());
  return call;
}

ApiResult<EmbeddingCall> parse_ollama_embeddings(const Json& body, const Request& defaults, Ignored ignored) {
  EmbeddingCall call;
  call.form = EmbeddingForm::kOneOf;
  Request q = embedding_request(defaults);
  BodyReader r(body, ignored);
  read_ollama(r, q, call);
  q.prompt = r.string("prompt", 64u << 20).value_or("");
  if (q.prompt->empty()) r.wrong("prompt", "it is missing or empty");
  ZRT_CHECK_OK(r.finish());
  call.requests.push_back(std::move(q));
  return call;
}

std::uint64_t embedding_answer_bytes(const EmbeddingCall& call, std::uint32_t dim) {
  const std::uint64_t n = call.requests.front().dimensions > 0 ? call.requests.front().dimensions : dim;
  const bool is_base64 = call.form == EmbeddingForm::kBase64;
  return call.requests.size() * (64 + (is_base64 ? 4 * (n * sizeof(float) / 3 + 1) : n * kMostNumberBytes));
}

std::string embedding_answer(EmbeddingForm form, const EmbeddingAnswer& answer) {
  std::string out;
  const auto append = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  switch (form) {
    case EmbeddingForm::kNumbers:
    case EmbeddingForm::kBase64:
      out = R"({"object":"list","data":[)";
      put_data(out, form, answer.embeddings);
      append(
          R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}}}})",
          json_string(answer.model), answer.usage.prompt_tokens, answer.usage.prompt_tokens,
          answer.usage.cached_tokens);
      break;
    case EmbeddingForm::kOllama:
      append(R"({{"model":{},"embeddings":[)", json_string(answer.model));
      for (std::size_t i = 0; i < answer.embeddings.size(); ++i) {
        if (i > 0) out += ',';
        put_numbers(out, answer.embeddings[i]);
      }
      append(R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
             static_cast<std::int64_t>(answer.seconds * 1e9), answer.usage.prompt_tokens);
      break;
    case EmbeddingForm::kOneOf:
      out = R"({"embedding":)";
      put_numbers(out, answer.embeddings[0]);
      out += '}';
      break;
  }
  return out;
}

}  // namespace zinc_rt::server
