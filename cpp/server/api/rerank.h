// Reads the bodies of /v1/rerank (Jina's, Cohere's and vLLM's) and of /v1/score (vLLM's), and writes their answers.
// Thread rule: pure functions on plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/api/embedding.h"

namespace zinc_rt::server {

enum class PairForm : std::uint8_t { kRerank, kScore };

struct PairCall {
  PairForm form = PairForm::kRerank;
  std::vector<Request> requests;           // one element, which is copied to make the request of each pair
  std::vector<std::string> first, second;  // pair i is first[i] (first[0] if it is the only one) and second[i]
  std::uint32_t top_n = 0;                 // the most results that the answer lists; 0: all
  bool returns_documents = false;

  const std::string& first_of(std::size_t i) const { return first.size() == 1 ? first[0] : first[i]; }
};

// Read a body. Absent fields keep the values of `defaults`. Unknown fields are an error or, if `ignored` is not null,
// are appended to it.
ApiResult<PairCall> parse_rerank(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<PairCall> parse_score(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// Returns an upper estimate of the answer's bytes.
std::uint64_t pair_answer_bytes(const PairCall& call);
// Writes the answer. `scores` has one number per pair. The results of a rerank are sorted, best first; results with
// equal scores stay in the order of the documents.
std::string pair_answer(const PairCall& call, const EmbeddingAnswer& answer, std::span<const double> scores);

}  // namespace zinc_rt::server
