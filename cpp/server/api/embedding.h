// Reads the bodies of /v1/embeddings and of Ollama's /api/embed and /api/embeddings, and writes their answers.
// Thread rule: pure functions on plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/api/generation_call.h"

namespace zinc_rt::server {

// A call may have at most this many inputs.
inline constexpr std::size_t kMaxInputs = 2048;

enum class EmbeddingForm : std::uint8_t {
  kNumbers,  // /v1/embeddings: each embedding is a list of numbers
  kBase64,   // /v1/embeddings: each embedding is base64 of little-endian float32
  kOllama,   // /api/embed: a list of lists of numbers
  kOneOf,    // /api/embeddings: one list of numbers
};

struct EmbeddingCall {
  std::vector<Request> requests;  // one request per input, in the order of the inputs
  EmbeddingForm form = EmbeddingForm::kNumbers;
  std::uint32_t wanted_context = 0;  // the context length that the client wants; 0: not given
};

// Read a body. An absent field has its value in `defaults`. An unknown field is an error if `ignored` is null; else its
// name is appended to `ignored`.
ApiResult<EmbeddingCall> parse_embedding(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<EmbeddingCall> parse_ollama_embed(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<EmbeddingCall> parse_ollama_embeddings(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// Returns an upper estimate of the answer's bytes.
std::uint64_t embedding_answer_bytes(const EmbeddingCall& call, std::uint32_t dim);

struct EmbeddingAnswer {
  std::string model;
  std::string id;
  std::vector<std::vector<float>> embeddings;  // one per input, if the model computes embeddings
  std::vector<double> scores;                  // one per input, if the model computes scores
  Usage usage;
  double seconds = 0;  // how long the call took
};
std::string embedding_answer(EmbeddingForm form, const EmbeddingAnswer& answer);

}  // namespace zinc_rt::server
