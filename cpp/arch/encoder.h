// The parts that encoders of BERT's kind share: norms behind each residual sum, LAYER_NORM with biases, a head that gives
// an embedding or a score. A token sees all tokens of its text, so a text is computed whole, in one step.
// Thread rule: as Builder.
#pragma once

#include "arch/blocks.h"

namespace zinc_rt::arch {

// Refuses by name what no encoder does: causal attention, generating, scoring without a classifier, a context longer
// than the file's positions.
void refuse_what_encoders_lack(Builder& b);
// The normed sum of the embeddings of tokens, token types (where the file has any) and, if wanted, positions.
BufferId encoder_embeddings(Builder& b, bool with_positions);
// hidden = norm(hidden + attention(hidden)); positions are rotated where `rope` has a table.
void encoder_attention(Builder& b, BufferId hidden, std::uint32_t layer, const Rope& rope);
// hidden = norm(hidden + x), behind the layer's feed-forward network.
void add_and_norm(Builder& b, BufferId hidden, BufferId x);
// The pooled vector, or with pooling rank the score of the classifier over the first token: cls, a dense layer with
// tanh, and cls.output, which gives the score; or just one of them, which gives the score.
Result<ir::Graph> encoder_head(Builder& b, BufferId hidden);

}  // namespace zinc_rt::arch
