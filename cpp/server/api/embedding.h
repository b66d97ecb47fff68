// The bodies and answers of /v1/embeddings, and of Ollama's /api/embed and /api/embeddings.
// Thread rule: pure functions on plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/api/generation_call.h"

namespace zinc_rt::server {

inline constexpr std::size_t kMaxInputs = 2048;

enum class EmbeddingForm : std::uint8_t {
  kNumbers,  // /v1/embeddings: each a list of numbers
  kBase64,   // /v1/embeddings: each float32, little endian
  kOllama,   // /api/embed: a list of lists of numbers
  kOneOf,    // /api/embeddings: one list of numbers
};

struct EmbeddingCall {
  std::vector<Request> requests;  // one for each input, in order
  EmbeddingForm form = EmbeddingForm::kNumbers;
  std::uint32_t wanted_context = 0;  // 0: not said
};

// Unknown fields are refused or, with `ignored`, listed there.
ApiResult<EmbeddingCall> parse_embedding(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<EmbeddingCall> parse_ollama_embed(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<EmbeddingCall> parse_ollama_embeddings(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// An upper estimate of the answer's bytes.
std::uint64_t embedding_answer_bytes(const EmbeddingCall& call, std::uint32_t dim);

struct EmbeddingAnswer {
  std::string model;
  std::string id;
  std::vector<std::vector<float>> embeddings;  // of the inputs, by a model that embeds
  std::vector<double> scores;                  // the same, by one that scores
  Usage usage;
  double seconds = 0;  // that the call took
};
std::string embedding_answer(EmbeddingForm form, const EmbeddingAnswer& answer);

}  // namespace zinc_rt::server
